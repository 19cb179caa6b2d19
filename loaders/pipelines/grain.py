"""Time the transformations of Grain, by the hook into which its own statistics are written.

Each transformation calls ``record_self_time`` of a ``Stats`` object around its own work, whether or
not Grain keeps statistics (``py_debug_mode``). That method is timed, for each object alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pipeprof.loaders.pipelines.meters import Attached, StageMeter, Timers, attach
from pipeprof.measure.call_timer import CallTimer, TimedSection
from pipeprof.model import TRAINING_LOOP

_LIBRARY = "grain"
_ITERATORS = "grain._src.python.dataset.dataset"


def find(thing: Any) -> Attached | None:
    """Attach timers to a ``DatasetIterator``, which Grain makes for each pass."""
    module = sys.modules.get(_ITERATORS)
    if module is None or not isinstance(thing, module.DatasetIterator):
        return None
    return attach(_LIBRARY, lambda timers: _Walk(timers).visit(thing._stats, TRAINING_LOOP, 1))


class _Walk:
    """Visits the statistics of transformations, from the batch to the sources."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._visited: set[int] = set()

    def visit(self, stats: Any, pool: str, threads: int) -> None:
        """Visit a transformation that ``threads`` of ``pool`` run, and those before it."""
        if id(stats) in self._visited:
            return
        self._visited.add(id(stats))
        config = stats._config
        if config.node_type.name == "INTERLEAVE":  # it makes its iterators later, or in processes
            self._timers.note("What Grain interleaves, or runs in processes, is not timed.")
            return
        if config.is_prefetch:  # its own time is that of waiting for its threads
            pool, threads = self._threads_of(config)
        else:
            self._time(stats, pool, threads)
        for parent in stats._parents:
            self.visit(parent, pool, threads)

    def _threads_of(self, config: Any) -> tuple[str, int]:
        iterator = config.iter_weakref() if config.iter_weakref is not None else None
        threads = getattr(iterator, "_target_num_threads", None)
        return ("reading threads", threads) if threads else ("thread that prefetches", 1)

    def _time(self, stats: Any, pool: str, threads: int) -> None:
        timer, record = CallTimer(), stats.record_self_time
        self._timers.replace(stats, "record_self_time", TimedSelf(record, timer))
        name = _name(str(stats._config.name))
        self._timers.add(StageMeter(*name, timer.read, threads, pool, threads))


class TimedSelf:
    """Stands in for ``record_self_time``. A pickled or copied one is the method itself."""

    __slots__ = ("_record", "_timer")

    def __init__(self, record: Callable[..., Any], timer: CallTimer) -> None:
        self._record, self._timer = record, timer

    def __call__(self, *, num_elements: int = 1, offset_ns: float = 0) -> TimedSection:
        inner = self._record(num_elements=num_elements, offset_ns=offset_ns)
        return self._timer.section(inner, num_elements, offset_ns / 1e9)

    def __reduce__(self) -> Any:
        return getattr, (self._record.__self__, "record_self_time")  # type: ignore[attr-defined]


def _name(text: str) -> tuple[str, str]:
    """Return the name and the kind of a transformation, from Grain's own text for it, such as
    ``MapMapDataset(transform=decode @ train.py:12)``."""
    kind, _, rest = text.partition("(")
    for ending in ("DatasetIterator", "IterDataset", "MapDataset"):
        kind = kind.removesuffix(ending)
    option, _, value = rest.rpartition(")")[0].partition("=")
    named = option in ("transform", "source")
    return (value.partition(" @ ")[0] if named else kind or text), kind or text
