"""Measure the stages of one loader over all of its passes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time, thread_time
from typing import Any
from weakref import WeakSet

from pipeprof.loaders.pipelines import grain, nodes, ray_data, spdl
from pipeprof.loaders.pipelines.contents import contents_of
from pipeprof.loaders.pipelines.meters import Attached, StageMeter
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.call_timer import Reading
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.thread_delays import ThreadDelays
from pipeprof.model import PipelineStage, PipelineThreads

_log = logging.getLogger(__name__)

_FAILED = (
    "The stages of this loader could not be timed: its library is of a version not known here."
)

_BEGAN_BEFORE = "ran before it could be timed: wrap the loader before anything iterates it."

Find = Callable[[Any], "Attached | None"]
LIBRARIES = ("torchdata.nodes", "spdl.pipeline", "grain", "ray.data")
ADAPTERS: tuple[Find, ...] = (nodes.find, spdl.find, grain.find, ray_data.find)


_READ_EVERY_S = 0.5
"""Most seconds between two looks at the threads: what one does after the last look is lost when it
ends."""

_NOTHING = PipelineThreads(0.0, 0.0, 0.0)
_timed: WeakSet[OpenPass] = WeakSet()
"""The passes of this process that have timers attached."""


def is_timed(thing: Any) -> bool:
    """Return whether the stages of this object of a library are timed in an open pass."""
    return any(each.thing is thing for each in _timed)


class PipelineObserver:
    """Attaches timers to a loader while it is iterated, and sums what they say."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK, adapters: tuple[Find, ...] = ADAPTERS) -> None:
        self._now, self._adapters = clock.now, adapters
        self._open: OpenPass | None = None
        self._totals: dict[str, PipelineStage] = {}
        self._threads = _NOTHING
        self.notes: dict[str, None] = {}
        """What cannot be measured, and why."""

    def begin(self, loader: Any) -> OpenPass:
        """Begin a pass, before the iterator of ``loader`` is asked for."""
        if self._open is not None:
            self._open.close()
        self._open = OpenPass(self)
        self._open.look_at(loader)
        return self._open

    def stages(self) -> tuple[PipelineStage, ...]:
        """Return the figures of all passes until now."""
        running = self._open.stages() if self._open is not None else ()
        totals = dict(self._totals)
        _add(totals, running)
        return tuple(totals.values())

    def threads(self) -> PipelineThreads:
        """Return what all threads but the training loop's did in all passes until now."""
        running = self._open.threads if self._open is not None else _NOTHING
        return _sum_of_threads(self._threads, running)

    def _attach(self, loader: Any) -> tuple[Any, Attached | None]:
        """Attach timers to the first object of a library that ``loader`` holds. Return both."""
        if not _any_imported():
            return None, None
        for each in contents_of(loader):
            for find in self._adapters:
                found = find(each)
                if found is not None:
                    self.notes.update(dict.fromkeys(found.notes))
                    return each, found
        return None, None

    def _end(self, ended: OpenPass) -> None:
        if self._open is ended:
            self._open = None
        self._threads = _sum_of_threads(self._threads, ended.threads)
        _add(self._totals, ended.stages())


def _any_imported() -> bool:
    return not sys.modules.keys().isdisjoint(LIBRARIES)


class OpenPass:
    """A pass whose stages are timed, once an object of a known library was found."""

    def __init__(self, observer: PipelineObserver) -> None:
        self._observer, self._now = observer, observer._now
        self._attached: Attached | None = None
        self.thing: Any = None
        """The object whose stages are timed."""
        self._before: tuple[Reading, ...] = ()
        self._began_s = 0.0
        self._before_cpu_s = 0.0
        self._ended_s: float | None = None
        self._due_s = 0.0
        self._delays = ThreadDelays()
        self.threads = _NOTHING

    @property
    def is_attached(self) -> bool:
        """Whether there are timers."""
        return self._attached is not None

    def may_find_more(self) -> bool:
        """Return whether timers are attached, or may be once there is more to look at."""
        return self.is_attached or _any_imported()

    def delivered(self) -> None:
        """Note that a batch came. What follows the last one is no work of the pipeline."""
        self._ended_s = self._now()
        if self._ended_s >= self._due_s:
            self._read_threads()

    def _read_threads(self) -> None:
        """Read what the threads did. The first times come soon, as a pass may be short."""
        now = self._now()
        elapsed_s = now - self._began_s
        self._due_s = now + min(_READ_EVERY_S, elapsed_s)
        self.threads = PipelineThreads(
            elapsed_s, _other_threads_cpu_s() - self._before_cpu_s, self._delays.read()
        )

    def look_at(self, thing: Any) -> None:
        """Attach timers to what ``thing`` holds, unless that was done."""
        if self._attached is not None:
            return
        try:
            self.thing, self._attached = self._observer._attach(thing)
            if self._attached is not None:
                _timed.add(self)
                self._before = tuple(meter.read() for meter in self._attached.meters)
        except Exception as error:  # an unknown version of a library may raise anything
            log_caught(_log, error, "the stages of a pipeline are not measured")
            self._observer.notes[_FAILED] = None
        self._began_s, self._before_cpu_s = self._now(), _other_threads_cpu_s()
        self._delays.read()

    def stages(self) -> tuple[PipelineStage, ...]:
        """Return the figures of this pass until now."""
        attached = self._attached
        if attached is None:
            return ()
        elapsed_s = (self._ended_s or self._now()) - self._began_s
        try:
            stages = tuple(
                _stage(attached.library, meter, before, elapsed_s)
                for meter, before in zip(attached.meters, self._before, strict=True)
            )
        except Exception as error:
            log_caught(_log, error, "the figures of a pipeline's stages are lost")
            return ()
        for each in stages:
            if each.items == 0 and self._ended_s is not None:
                self._observer.notes[f"{each.name} {_BEGAN_BEFORE}"] = None
        return tuple(each for each in stages if each.items != 0)

    def close(self) -> None:
        """Remove the timers, and keep their figures."""
        if self._attached is None:
            return
        self._observer._end(self)
        undo, self._attached, self.thing = self._attached.undo, None, None
        _timed.discard(self)
        for each in undo:
            with suppress_and_log(_log, "a timer stays in a pipeline"):
                each()


def _other_threads_cpu_s() -> float:
    """Return the CPU time of all threads of this process but the current one."""
    return process_time() - thread_time()


def _stage(library: str, meter: StageMeter, before: Reading, elapsed_s: float) -> PipelineStage:
    items, busy_s, cpu_s, empty_s, waited_s = (
        None if now is None else now - (then or 0)
        for now, then in zip(meter.read(), before, strict=True)
    )
    return PipelineStage(
        name=meter.name, library=library, kind=meter.kind,
        items=None if items is None else int(items), busy_s=busy_s, elapsed_s=elapsed_s,
        concurrency=meter.concurrency, cpu_s=cpu_s, waited_s=waited_s,
        pool=meter.pool, pool_size=meter.pool_size,
        ready_share=_ready_share(empty_s, elapsed_s),
        measured_by=meter.measured_by,
    )  # fmt: skip


def _ready_share(empty_s: float | None, elapsed_s: float) -> float | None:
    if empty_s is None or not elapsed_s > 0:
        return None
    return min(1.0, max(0.0, 1 - empty_s / elapsed_s))


def _add(totals: dict[str, PipelineStage], stages: tuple[PipelineStage, ...]) -> None:
    """Add the figures of a pass to those of earlier ones."""
    for new in stages:
        old = totals.get(new.name)
        totals[new.name] = new if old is None else _sum(old, new)


def _sum(old: PipelineStage, new: PipelineStage) -> PipelineStage:
    elapsed_s = old.elapsed_s + new.elapsed_s
    ready_share = None
    if old.ready_share is not None and new.ready_share is not None and elapsed_s > 0:
        ready_s = old.ready_share * old.elapsed_s + new.ready_share * new.elapsed_s
        ready_share = ready_s / elapsed_s
    items = _plus(old.items, new.items)
    return replace(
        new,
        items=None if items is None else int(items),
        busy_s=_plus(old.busy_s, new.busy_s), elapsed_s=elapsed_s,
        cpu_s=_plus(old.cpu_s, new.cpu_s), waited_s=_plus(old.waited_s, new.waited_s),
        ready_share=ready_share,
    )  # fmt: skip


def _sum_of_threads(one: PipelineThreads, other: PipelineThreads) -> PipelineThreads:
    return PipelineThreads(
        one.elapsed_s + other.elapsed_s,
        one.cpu_s + other.cpu_s,
        _plus(one.runqueue_s, other.runqueue_s),
    )


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
