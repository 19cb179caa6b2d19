"""The measuring of one loader, however often it is iterated, and by whatever object."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.device_monitor import DeviceMonitor, DeviceTotals
from pipeprof.loaders.instrument.host_monitor import HostMonitor
from pipeprof.loaders.instrument.in_memory_data import IndexedData
from pipeprof.loaders.instrument.inline_observer import HostObserver, InlineObserver, Observer
from pipeprof.loaders.instrument.iterator import ProfiledIterator, TimedPass
from pipeprof.loaders.instrument.loader_info import (
    LoaderInfo,
    describe_loader,
    known_length,
    unobserved_stages,
)
from pipeprof.loaders.instrument.overhead import measure_overhead
from pipeprof.loaders.instrument.sampling import SamplingSchedule
from pipeprof.loaders.instrument.worker_hooks import WorkerHook
from pipeprof.loaders.instrument.worker_observer import WorkerObserver
from pipeprof.log import log_caught
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.environment import read_environment
from pipeprof.measure.loader_pass import FLUSH_EVERY, Pass
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.request_counts import RequestTable, RequestTotals
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import Arrays
from pipeprof.model import Profile, Recording
from pipeprof.storage.cache_state import tell_cache
from pipeprof.units import format_share

if TYPE_CHECKING:  # only who looks at a run while it goes on needs what draws it
    from pipeprof.loaders.live.metrics import LiveFigures
    from pipeprof.loaders.live.view import Live

_log = logging.getLogger(__name__)

_SPARE_SLOTS = FLUSH_EVERY + 64
"""Records that main may not have read yet, above those of batches that are prefetched."""
_KEPT_SIDES = 8
"""Passes of which the accelerator may still have something to tell."""


class LoaderProfiler:
    """All passes over one loader, or over the loaders that a framework makes in its place."""

    def __init__(
        self,
        name: str,
        accelerator: str = "not observed",
        whole: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """``whole``: note every batch, whatever that costs."""
        self.live: Live | None = None
        """Shows how it goes; to be set before a pass that is to be shown."""
        self._figures: LiveFigures | None = None
        self._name = name
        self._whole, self._clock = whole, clock
        self.schedule = SamplingSchedule(whole, clock)
        self._accelerator = accelerator
        self._info = LoaderInfo()
        self._indexed: IndexedData | None = None
        self._earlier: Summary | None = None
        self._recorder = Recorder(clock, self._fold, name)
        self._device = DeviceTotals()
        self._sides: deque[DeviceMonitor] = deque(maxlen=_KEPT_SIDES)
        self._host = HostMonitor(clock)
        self._requests = RequestTotals()
        self._missing: dict[str, str] = {}
        self._kept: tuple[Callable[[], Any], WorkerObserver] | None = None
        """The iterator that its loader keeps and that carries our hook, weakly; its observer."""

    def iterate(self, loader: Any, start: Callable[[], Iterator[Any]]) -> ProfiledIterator:
        """A pass over ``loader``; ``start`` makes its own iterator. Raises what that raises."""
        self._info = describe_loader(loader)
        self._host.look(self._info.config)
        if self._indexed is None:
            self._indexed = IndexedData(loader)
        turn = self._recorder.begin()
        turn.may_wait = not safe_getattr(loader, "persistent_workers")
        iterator, observer = self._begin(loader, start)
        turn.started()
        return ProfiledIterator(self._turn(loader, iterator, turn, observer))

    def ask_state(self, loader: Any, state_dict: Callable[[], Any]) -> Any:
        """What ``state_dict`` of ``loader`` returns; workers that it starts carry our hook."""
        started = safe_getattr(loader, "_iterator") is not None
        if started or not isinstance(loader, DataLoader) or not loader.num_workers:
            return state_dict()
        state = None

        def start() -> Any:
            nonlocal state
            state = state_dict()
            return loader._iterator

        self._hooked(loader, start)
        return state

    def __reduce__(self) -> Any:
        # a copy in another process begins anew
        return LoaderProfiler, (self._name, self._accelerator, self._whole, self._clock)

    def find_device(self) -> DeviceMonitor | None:
        """The accelerator's side of a pass, once there is anything to see of it."""
        self._host.glance()
        try:
            if not DeviceMonitor.there():
                return None
            side = DeviceMonitor(self._recorder, self._device)
        except Exception as error:  # of a torch that we do not know
            log_caught(_log, error, "the accelerator's time is not measured")
            return None
        self._sides.append(side)
        return side

    def profile(self, threshold: float = 0.05) -> Profile:
        """All passes so far, analysed. ``threshold``: the starved share that counts as starved."""
        return assemble(self.recording(), threshold, self._earlier)

    @property
    def batches(self) -> int:
        """Delivered so far."""
        return self._recorder.count

    def recording(self) -> Recording:
        """All passes so far, as measured: of a long run the end."""
        for side in self._sides:
            side.collect()
        recorder, requests, info = self._recorder, self._requests.log(), self._info
        log = recorder.log()
        return Recording(
            name=self._name,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            config=info.config,
            environment=read_environment(self._accelerator),
            batches=log,
            warmup_batches=info.warmup,
            first_batch_s=recorder.first_batch_s,
            epochs=tuple(recorder.epochs),
            lost_records=recorder.lost_records,
            source=info.source_now,
            cache=tell_cache(log, info.source),
            overhead=measure_overhead(
                info.config,
                recorder.wall_s,
                batches=recorder.count - recorder.unwatched,
                unwatched=recorder.unwatched,
                requests=requests.count,
                charges=self._requests.charges,
            ),
            main=self._host.snapshot(self._device),
            requests=requests,
            missing={**unobserved_stages(info.config, log), **self._missing},
            notes=(
                *info.notes,
                *{side.stopped: None for side in self._sides if side.stopped},
                *_notes_of(recorder),
                *self._live_note(),
            ),
            unix_offset_s=time() - perf_counter(),
            pause_kinds=tuple(recorder.pauses.kinds),
            indexing=self._indexed.snapshot() if self._indexed else None,
        )

    def _turn(
        self, loader: Any, iterator: Iterator[Any], turn: Pass, observer: Observer
    ) -> TimedPass:
        if self.live is None:
            return TimedPass(iterator, self, turn, observer)
        from pipeprof.loaders.live.metrics import LiveFigures
        from pipeprof.loaders.live.view import LivePass
        from pipeprof.report.live import LiveView

        if self._figures is None:
            self._figures = LiveFigures(self._info.warmup, self._info.capacity)
            self._recorder.heard = self._figures.add
        view = LiveView(self._name, self._recorder.epoch_count, 0, known_length(loader))
        return LivePass(iterator, self, turn, observer, self.live, self._figures, view)

    def _fold(self, arrays: Arrays) -> None:
        if self._earlier is None:
            self._earlier = Summary(self._info.warmup)
        self._earlier.add(Columns(arrays))

    def _begin(
        self, loader: Any, start: Callable[[], Iterator[Any]]
    ) -> tuple[Iterator[Any], Observer]:
        if not isinstance(loader, DataLoader):
            return start(), self._unseen(f"{type(loader).__name__} is not a torch DataLoader")
        if loader.num_workers == 0:
            return self._inline(loader, start())
        observer = self._observer_of(safe_getattr(loader, "_iterator"))
        if observer is not None and loader.persistent_workers:
            self.schedule.begin(observer.ring, self._info.capacity)
            observer.watch(True)  # workers say through a hook that they begin anew
            return start(), observer
        return self._hooked(loader, start)

    def _observer_of(self, iterator: Any) -> WorkerObserver | None:
        """Of an ``iterator`` that we hooked before."""
        if iterator is not None and self._kept is not None and self._kept[0]() is iterator:
            return self._kept[1]
        return None

    def _inline(
        self, loader: DataLoader[Any], iterator: Iterator[Any]
    ) -> tuple[Iterator[Any], Observer]:
        observer = InlineObserver(self._whole, self._clock)
        try:
            observer.attach(iterator)
        except Exception as error:
            log_caught(_log, error, "the stages of a loader without workers are not measured")
            return iterator, self._unseen(f"{type(loader).__name__} makes an iterator of its own")
        self._requests.add(observer.requests)
        return iterator, observer

    def _hooked(
        self, loader: DataLoader[Any], start: Callable[[], Iterator[Any]]
    ) -> tuple[Iterator[Any], Observer]:
        """Start workers that carry the hook, if none are running."""
        running = safe_getattr(loader, "_iterator")
        try:
            ring = Ring(loader.num_workers * (loader.prefetch_factor or 2) + _SPARE_SLOTS)
            self.schedule.begin(ring, self._info.capacity)
            table = RequestTable(loader.num_workers)
        except OSError as error:
            return start(), self._unseen(f"no shared memory for the workers' records: {error}")
        observer = WorkerObserver(ring, self._clock)
        observer.begin_epoch()
        user_init = loader.worker_init_fn
        loader.worker_init_fn = WorkerHook(ring, table, user_init, self._whole, self._clock)
        try:
            iterator = start()
        finally:
            loader.worker_init_fn = user_init
        known = self._observer_of(iterator)
        if known is not None:
            return iterator, known
        unseen = _why_unseen(loader, iterator, running)
        if unseen is not None:
            return iterator, self._unseen(unseen)
        observer.attach(iterator)
        self._requests.add(table)
        if safe_getattr(loader, "_iterator") is iterator:  # which keeps it for the next epoch
            self._kept = weakref.ref(iterator), observer
        return iterator, observer

    def _live_note(self) -> tuple[str, ...]:
        wall_s = self._recorder.wall_s
        if self._figures is None or not wall_s > 0:
            return ()
        share = format_share(self._figures.spent_s / wall_s)
        return (f"The live view took {share} of the time, on top of the profiler overhead.",)

    def _unseen(self, reason: str) -> HostObserver:
        """Step aside: the training goes on, and the profile says what is missing and why."""
        for stage in ("fetch", "collate", "transfer"):
            self._missing[stage] = reason
        return HostObserver(self._info.batch_size)


def _notes_of(recorder: Recorder) -> tuple[str, ...]:
    if not recorder.unwatched:
        return ()
    share = format_share(1 - recorder.unwatched / recorder.count)
    note = (
        f"Of {recorder.count:,} batches {share} were watched on their way, in stretches, and all "
        "others only clocked: they come so fast that to watch them all would cost some per cent. "
        "pipeprof.wrap(loader, whole=True), or pipeprof run --whole, does it."
    )
    return (note,)


def _why_unseen(loader: Any, iterator: Any, running: Any) -> str | None:
    """Why our hook in the workers of ``iterator`` is of no use, if it is not."""
    if iterator is running:
        return "its workers were running before they could be hooked"
    if not WorkerObserver.fits(iterator):
        return f"{type(loader).__name__} makes an iterator of its own"
    if iterator._rcvd_idx:
        return "it was resumed by dropping batches, which are not counted apart"
    return None
