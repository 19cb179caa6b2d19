"""Measure one loader over all of its passes, and build its recording and profile."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.device_monitor import (
    NO_WAITS,
    DeviceMonitor,
    DeviceTotals,
    DeviceWaits,
)
from pipeprof.loaders.instrument.dispatching import dispatch_of
from pipeprof.loaders.instrument.host_monitor import HostMonitor
from pipeprof.loaders.instrument.in_memory_data import IndexedData
from pipeprof.loaders.instrument.inline_observer import Observer
from pipeprof.loaders.instrument.iterator import ProfiledIterator, TimedPass
from pipeprof.loaders.instrument.late_start import LatePass
from pipeprof.loaders.instrument.loader_info import (
    describe_loader,
    known_length,
    unobserved_stages,
)
from pipeprof.loaders.instrument.observed_start import ObservedStart
from pipeprof.loaders.instrument.outer_pass import OuterPass
from pipeprof.loaders.instrument.overhead import measure_overhead
from pipeprof.loaders.instrument.rebuilds import origin_of
from pipeprof.loaders.instrument.sampling import SamplingSchedule, sampling_note
from pipeprof.loaders.instrument.torchs_iterator import has_torchs
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.environment import read_environment
from pipeprof.measure.job_place import find_job_place, note_process_group
from pipeprof.measure.loader_pass import Pass
from pipeprof.measure.pauses import NamedInterval
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.rows import Arrays, Floats
from pipeprof.model import Dispatch, LoaderConfig, Overhead, PauseKind, Profile, Recording
from pipeprof.storage.cache_state import infer_cache_state
from pipeprof.units import format_share

if TYPE_CHECKING:  # what draws the live view is imported only where one is shown
    from pipeprof.loaders.live.live_pass import LiveLoader

_log = logging.getLogger(__name__)

_KEPT_DEVICE_MONITORS = 8
"""Number of recent passes whose accelerator results may still arrive."""
_INNER_MEASURED = (
    "What was wrapped iterates a DataLoader, which is measured in its place. What it does with a "
    "batch itself is part of the training step."
)
_NOT_MEASURED = Overhead(None, None, "not measured")


class LoaderProfiler:
    """Records all passes over one loader, or over the loaders that a framework puts in its place.
    With ``whole`` every batch is recorded in full, whatever that costs. ``accelerator`` is what
    consumes the batches, in words; by default the name of the device in use, if any."""

    def __init__(
        self,
        name: str,
        accelerator: str = "",
        whole: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.live: LiveLoader | None = None
        """What shows and exports the figures; set it before the first pass that it should show."""
        self.live_s = 0.0
        self.taken_ahead = False
        self._measures_inner = False
        """Whether what is measured is a DataLoader that the wrapped loader iterates."""
        self.name = name
        self._whole, self._clock = whole, clock
        self._start = ObservedStart(whole, clock)
        self._accelerator = accelerator
        self._rebuilt_from: LoaderConfig | None = None
        self._dispatch: Dispatch | None = None
        self._indexed: IndexedData | None = None
        self._earlier: Summary | None = None
        self._waits_shown = NO_WAITS
        self._recorder = Recorder(clock, self._fold, name)
        self._device = DeviceTotals()
        self._device_monitors: deque[DeviceMonitor] = deque(maxlen=_KEPT_DEVICE_MONITORS)
        self._host = HostMonitor(clock)

    def iterate(self, loader: Any, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """Begin a pass over ``loader``, whose iterator ``start`` returns. Raises what that does."""
        if not has_torchs(loader):
            return self._iterate_outer(loader, start)
        loader_pass = self._begin(loader)
        iterator, observer = self._start.start(loader, start)
        loader_pass.started()
        loader_pass.may_fill_later = not safe_getattr(loader, "persistent_workers")
        self._host.workers_started()
        if observer is not None:
            return ProfiledIterator(self._timed_pass(loader, iterator, loader_pass, observer))
        loader_pass.may_fill_later = False  # the next pass may overwrite records
        late = LatePass(self._start, self._timed_pass, loader, iterator, loader_pass)
        return ProfiledIterator(late)

    def _iterate_outer(self, loader: Any, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """Begin a pass over a loader that may iterate a DataLoader, which is measured then."""
        known = self._start.info, dict(self._start.missing)  # of a DataLoader that began earlier

        def step_aside() -> None:
            self._start.info, self._start.missing = known
            self._measures_inner = True

        # its rows are not filled in later, for which the iterator would have to be kept
        outer = OuterPass(self, self._timed_pass, loader, self._begin(loader), step_aside)
        outer.start(partial(self._start.start_other, loader, start))
        self._host.workers_started()
        return outer.iterator if outer.has_stepped_aside else ProfiledIterator(outer)

    def _begin(self, loader: Any) -> Pass:
        self._start.info = describe_loader(loader)
        self._describe(loader)
        self._host.begin_pass(self._start.info.config)
        return self._recorder.begin()

    def _describe(self, loader: Any) -> None:
        """Note what else is known of ``loader`` and of who asked for its batches. Once workers are
        forked this takes longer, as each page that is written to is copied then."""
        origin = origin_of(loader)
        self._rebuilt_from = origin.config if origin is not None else None
        self._dispatch = dispatch_of(sys._getframe())
        with suppress_and_log(_log, "the rank in torch's process group is not known"):
            note_process_group()
            self.schedule.is_rank = find_job_place() is not None
        if self._indexed is None:
            self._indexed = IndexedData(loader)

    def hooked_state_dict(self, loader: Any, state_dict: Callable[[], Any]) -> Any:
        """Return ``state_dict()`` of ``loader``, and hook the workers that it may start."""
        return self._start.hooked_state_dict(loader, state_dict)

    def start_workers(self, loader: DataLoader[Any]) -> None:
        """Start the persistent workers of ``loader``, with our hook, before a pass needs them."""
        self._start.info = describe_loader(loader)
        self._start.start_hooked(loader, partial(iter, loader))
        self._start.schedule = SamplingSchedule(self._whole, self._clock)  # nothing was recorded

    def __reduce__(self) -> Any:
        # a copy in another process begins without measurements
        return LoaderProfiler, (self.name, self._accelerator, self._whole, self._clock)

    @property
    def schedule(self) -> SamplingSchedule:
        """Decides which batches are recorded in full."""
        return self._start.schedule

    def find_device(self) -> DeviceMonitor | None:
        """Return a monitor of the accelerator for a new pass; ``None`` while none is in use."""
        self._host.poll()
        try:
            if not DeviceMonitor.has_work():
                return None
            monitor = DeviceMonitor(self._recorder, self._device)
        except Exception as error:  # an unknown version of torch may raise anything
            log_caught(_log, error, "the accelerator's time is not measured")
            return None
        self._device_monitors.append(monitor)
        return monitor

    def profile(self, threshold: float = 0.05) -> Profile:
        """Analyse all passes so far; a starved share of at least ``threshold`` means starved."""
        return assemble(self.recording(), threshold, self._earlier)

    @property
    def batches(self) -> int:
        """Number of batches delivered so far."""
        return self._recorder.count

    @property
    def has_report(self) -> bool:
        """Whether a batch was delivered, or it is known that rank 0 takes them all."""
        return bool(self.batches) or self._dispatch is not None

    def recording(self, with_overhead: bool = True) -> Recording:
        """Return the measurements of all passes so far; of a long run, only the last batches. To
        measure the profiler's overhead takes about 0.1 s."""
        self._collect()
        recorder, requests, info = self._recorder, self._start.requests.log(), self._start.info
        log, pipeline = recorder.log(), self._start.pipeline.stages()
        return Recording(
            name=self.name,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            config=info.config,
            environment=read_environment(self._accelerator or self._device.name or "not observed"),
            batches=log,
            warmup_batches=info.warmup,
            first_batch_s=recorder.first_batch_s,
            epochs=tuple(recorder.epochs),
            lost_records=recorder.lost_records,
            source=info.source_now,
            cache=infer_cache_state(log, info.source),
            overhead=self._overhead(requests.count) if with_overhead else _NOT_MEASURED,
            main=self._host.snapshot(self._device),
            requests=requests,
            missing={**unobserved_stages(info.config, log), **self._start.missing},
            notes=(
                *info.notes,
                *{each.stopped: None for each in self._device_monitors if each.stopped},
                *sampling_note(recorder.count, recorder.unwatched),
                *self._start.pipeline.notes,
                *([_INNER_MEASURED] if self._measures_inner else ()),
                *self._live_note(),
            ),
            unix_offset_s=time() - perf_counter(),
            pause_kinds=tuple(recorder.pauses.kinds),
            other_loaders=recorder.other_loaders(),
            indexing=self._indexed.snapshot() if self._indexed else None,
            rebuilt_from=self._rebuilt_from,
            shared_reads=info.shared_reads,
            pickled_starts=self._start.worker_starts.snapshot(),
            limited_cache=info.limited_cache,
            dispatch=self._dispatch,
            taken_ahead=self.taken_ahead,
            pipeline=pipeline,
            pipeline_threads=self._start.pipeline.threads(),
        )

    def _overhead(self, requests: int) -> Overhead:
        recorder = self._recorder
        return measure_overhead(
            self._start.info.config,
            recorder.wall_s,
            recorded=recorder.count - recorder.unwatched,
            only_timed=recorder.unwatched,
            requests=requests,
            charges=self._start.requests.charges,
        )

    def _timed_pass(
        self, loader: Any, iterator: Iterator[Any], loader_pass: Pass, observer: Observer
    ) -> TimedPass:
        """Return what times the batches of a pass that has begun."""
        if self.live is None:
            return TimedPass(iterator, self, loader_pass, observer)
        from pipeprof.loaders.live.live_pass import LivePass

        live, info = self.live, self._start.info
        live.figures.warmup, live.figures.capacity = info.warmup, info.capacity
        self._recorder.on_rows = self._show_rows
        return LivePass(iterator, self, loader_pass, observer, live, known_length(loader))

    def note_pause(self, begin_s: float, end_s: float) -> None:
        """Note a pause that only its length shows, to someone who knows more of the loop."""
        self._recorder.note_pause(NamedInterval(begin_s, end_s, PauseKind("", "length")))

    def device_waits(self) -> DeviceWaits:
        """Return what is known by now of the accelerator during all waits for batches."""
        self._collect()
        return self._device.waits

    def made_every_s(self) -> float:
        """Return the mean seconds in which its workers make a batch; NaN where that is unknown."""
        self._recorder.fill()
        return self._recorder.made_every_s()

    def _collect(self) -> None:
        for monitor in self._device_monitors:
            monitor.collect()

    def _show_rows(self, rows: Floats) -> None:
        """Pass rows on to the live figures."""
        waits = self.device_waits()
        latest = waits.since(self._waits_shown)
        if self.live is not None:
            share = (latest if latest.known_s > 0 else waits).stalled_share
            self.live.figures.main_core_wait = self._host.core_wait_share()
            self.live.figures.add(rows, share)
        self._waits_shown = waits

    def _fold(self, arrays: Arrays) -> None:
        """Summarise the oldest rows, which the recorder is about to drop."""
        if self._earlier is None:
            self._earlier = Summary(self._start.info.warmup)
        self._earlier.add(Columns(arrays), self._host.core_wait_share())

    def _live_note(self) -> tuple[str, ...]:
        if self.live is None or not (wall_s := self._recorder.wall_s) > 0:
            return ()
        taken = format_share(self.live_s / wall_s)
        return (f"Showing or exporting figures took {taken} of the time, on top of the overhead.",)
