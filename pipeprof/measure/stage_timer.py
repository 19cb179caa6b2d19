"""Time the stages of making a batch: reading, decoding, transforming, collating.

A thread that makes a batch has one open `Tally`. `record_read` and `stage` add to it, and cost next
to nothing when there is none. Stages may be nested: each gets only its own time, so that together
they never exceed the whole.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from pipeprof.errors import UsageError
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.model import Stage

P = ParamSpec("P")
R = TypeVar("R")

IN_FETCH = (Stage.READ, Stage.DECODE, Stage.TRANSFORM, Stage.COLLATE)
"""The stages of making a batch."""

# looked up once: an Enum's attributes are slow
_READ, _COLLATE = Stage.READ, Stage.COLLATE


class Tally:
    """The seconds, bytes and requests of each stage while one batch is made."""

    __slots__ = ("_last", "bytes", "charges", "cpu_now", "cpu_s", "inner_cpu_s", "inner_s",
                 "looked_s", "note_requests", "now", "requests", "seconds", "stage_changes",
                 "store_cpu_s", "store_s", "waited_s")  # fmt: skip

    def __init__(self, note_requests: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self.now, self.cpu_now = clock.now, clock.cpu_now
        self.seconds: dict[Stage, float] = {}
        self.bytes = 0
        self.requests = 0
        self.inner_s = 0.0
        """Seconds within the open stage that inner stages and reads have taken."""
        self.cpu_s: dict[Stage, float] | None = None
        """CPU seconds of this thread in each stage; ``None`` where they are not measured."""
        self.inner_cpu_s = 0.0
        self.stage_changes = 0
        """How often the stage of fetching changed, the first stage included."""
        self.charges = 0
        """How often a stage or a read was clocked."""
        self._last: Stage | None = None
        self.note_requests = note_requests
        """Whether requests of this thread are still to be noted for this batch."""
        self.store_s = self.store_cpu_s = 0.0
        """Seconds of waiting for the store, and the process's CPU seconds meanwhile."""
        self.looked_s = self.waited_s = 0.0
        """Sampled seconds of `store_s`, and those in which threads waited for a core."""

    def charge(self, name: Stage, seconds: float) -> None:
        """Add seconds to a stage."""
        self.charges += 1
        if name is not self._last and name is not _COLLATE:
            self.stage_changes += 1
            self._last = name
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def add_read(self, start_s: float, end_s: float, size: int, requests: int) -> None:
        """Charge a read of ``size`` bytes to the stage `read`."""
        duration = end_s - start_s
        self.charge(_READ, duration)
        self.inner_s += duration
        self.bytes += size
        self.requests += requests


class _Current(threading.local):
    def __init__(self) -> None:  # a class attribute would take twice as long
        self.tally: Tally | None = None


current = _Current()
"""``current.tally`` is this thread's. Hot paths set it themselves; other code uses `tallied`."""


def record_read(start_s: float, end_s: float, size: int, requests: int) -> None:
    """Charge a read of ``size`` bytes to the batch that this thread is making, if any."""
    if current.tally is not None:
        current.tally.add_read(start_s, end_s, size, requests)


def stage(name: Stage | str) -> Timed:
    """Name a part of a data set's own code, so that its time is reported as a stage.

    Use it as a context manager or a decorator, in workers or in the main process. It costs next to
    nothing without a profiler. The time of a nested stage counts for the inner one alone. Only the
    call of a generator function is timed, not the iteration.

    Args:
        name: ``"read"``, ``"decode"``, ``"transform"`` or ``"collate"``.

    Returns:
        A context manager that is also a decorator.

    Raises:
        UsageError: ``name`` is none of these.

    Examples:
        >>> with pipeprof.stage("decode"):
        ...     image = decode(data)
        >>> @pipeprof.stage("transform")
        ... def augment(image): ...
    """
    try:
        known = Stage(name)
    except ValueError:
        known = None
    if known not in IN_FETCH:
        raise UsageError(
            f"{str(name)!r} is not a stage of making a batch; use one of {', '.join(IN_FETCH)}"
        )
    return Timed(known)


class Timed:
    """The context manager that `stage` returns. It cannot be entered again before it is left; a
    decorated function enters a new one in each call."""

    __slots__ = ("_before_cpu_s", "_before_s", "_name", "_start_cpu_s", "_start_s", "_tally")

    _tally: Tally | None
    _before_s: float
    _start_s: float

    def __init__(self, name: Stage) -> None:
        self._name = name
        self._before_cpu_s = self._start_cpu_s = 0.0

    def __enter__(self) -> None:
        tally = self._tally = current.tally
        if tally is not None:
            self._before_s, tally.inner_s = tally.inner_s, 0.0
            if tally.cpu_s is not None:
                self._before_cpu_s, tally.inner_cpu_s = tally.inner_cpu_s, 0.0
                self._start_cpu_s = tally.cpu_now()
            now = tally.now  # calling a local is faster than calling a slot
            self._start_s = now()

    def __exit__(self, *error: object) -> None:
        tally = self._tally
        if tally is not None:
            now = tally.now
            total = now() - self._start_s
            tally.charge(self._name, total - tally.inner_s)
            tally.inner_s = self._before_s + total
            if tally.cpu_s is not None:
                self._charge_cpu(tally, tally.cpu_s)

    def _charge_cpu(self, tally: Tally, charged: dict[Stage, float]) -> None:
        total = tally.cpu_now() - self._start_cpu_s
        charged[self._name] = charged.get(self._name, 0.0) + total - tally.inner_cpu_s
        tally.inner_cpu_s = self._before_cpu_s + total

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        name = self._name

        @functools.wraps(function)
        def timed(*arguments: P.args, **options: P.kwargs) -> R:
            if current.tally is None:
                return function(*arguments, **options)
            with Timed(name):
                return function(*arguments, **options)

        return timed


@contextmanager
def tallied(tally: Tally) -> Iterator[Tally]:
    """Let `record_read` and `stage` of this thread add to ``tally`` while the body runs."""
    outer, current.tally = current.tally, tally
    try:
        yield tally
    finally:
        current.tally = outer
