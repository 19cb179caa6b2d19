"""Time the calls of one function from any number of threads, and put timers into foreign objects.

A timer costs about 1 µs a call. Functions that take less than `_SHORT_S` on average are timed once
in `_STRIDE` calls, so the cost stays near 1 %.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import get_ident
from types import TracebackType
from typing import Any, Final, NamedTuple

from pipeprof.measure.clock import SYSTEM_CLOCK, Clock

_SHORT_S: Final = 100e-6
_STRIDE: Final = 17
"""A prime, so that no rhythm of the data hides calls from the timer."""
_LEAST_TIMED: Final = 20
"""Timed calls of a thread before it may skip any."""
_ITEMS, _CALLS, _TIMED, _BUSY_S, _CPU_S, _SKIP = range(6)


class Reading(NamedTuple):
    """What a stage did so far; differences of two readings are what it did between them."""

    items: int | None = 0
    busy_s: float | None = 0.0
    cpu_s: float | None = None
    empty_s: float | None = None
    """Time in which no finished item lay ready, where the library keeps that."""
    waited_s: float | None = None
    """Time that the training loop waited for the stage, where the library keeps that."""


class CallTimer:
    """Sums what calls take, and counts those that returned."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._now, self._cpu_now = clock.now, clock.cpu_now
        self._sums: dict[int, list[float]] = {}
        """Thread → its sums. No other thread writes to them."""

    def read(self) -> Reading:
        """Return the sums over all threads, scaled to the calls that were not timed."""
        items, busy_s, cpu_s = 0.0, 0.0, 0.0
        for sums in list(self._sums.values()):
            scale = sums[_CALLS] / sums[_TIMED] if sums[_TIMED] else 0.0
            items += sums[_ITEMS]
            busy_s += scale * sums[_BUSY_S]
            cpu_s += scale * sums[_CPU_S]
        return Reading(int(items), busy_s, cpu_s)

    def call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return ``function(*args, **kwargs)``, and note what it took."""
        sums = self._of_this_thread()
        sums[_CALLS] += 1
        if sums[_SKIP]:
            sums[_SKIP] -= 1
            result = function(*args, **kwargs)
        else:
            cpu_s, start_s = self._cpu_now(), self._now()
            try:
                result = function(*args, **kwargs)
            finally:
                self._add(sums, self._now() - start_s, self._cpu_now() - cpu_s)
        sums[_ITEMS] += 1
        return result

    def section(
        self, inner: AbstractContextManager[Any], items: int, extra_s: float
    ) -> TimedSection:
        """Return ``inner`` as a context manager that is timed, too. ``extra_s`` is added."""
        return TimedSection(self, inner, items, extra_s)

    def begin(self) -> tuple[float, float]:
        return self._cpu_now(), self._now()

    def end(self, begun: tuple[float, float], items: int, extra_s: float) -> None:
        """Note ``items`` that were worked on since ``begun``."""
        sums = self._of_this_thread()
        sums[_CALLS] += 1
        sums[_ITEMS] += items
        self._add(sums, self._now() - begun[1] + extra_s, self._cpu_now() - begun[0])

    def _of_this_thread(self) -> list[float]:
        thread = get_ident()
        sums = self._sums.get(thread)
        if sums is None:
            sums = self._sums[thread] = [0.0] * (_SKIP + 1)
        return sums

    def _add(self, sums: list[float], busy_s: float, cpu_s: float) -> None:
        sums[_TIMED] += 1
        sums[_BUSY_S] += busy_s
        sums[_CPU_S] += cpu_s
        if sums[_TIMED] >= _LEAST_TIMED and sums[_BUSY_S] < _SHORT_S * sums[_TIMED]:
            sums[_SKIP] = _STRIDE - 1


class TimedCall:
    """Stands in for a function, whose calls it times. A pickled or copied one is the function."""

    __slots__ = ("_function", "_timer")

    def __init__(self, function: Callable[..., Any], timer: CallTimer) -> None:
        self._function, self._timer = function, timer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._timer.call(self._function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __reduce__(self) -> Any:
        return _same, (self._function,)


class TimedSection:
    """A context manager around another one, which notes how long its block took."""

    __slots__ = ("_begun", "_extra_s", "_inner", "_items", "_timer")

    def __init__(
        self, timer: CallTimer, inner: AbstractContextManager[Any], items: int, extra_s: float
    ) -> None:
        self._timer, self._inner, self._items, self._extra_s = timer, inner, items, extra_s
        self._begun = (0.0, 0.0)

    def __enter__(self) -> Any:
        entered = self._inner.__enter__()
        self._begun = self._timer.begin()
        return entered

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._timer.end(self._begun, self._items if error is None else 0, self._extra_s)
        return self._inner.__exit__(kind, error, trace)


def replace_attribute(thing: Any, name: str, value: Any) -> Callable[[], None]:
    """Set an attribute of one object, and return a function that undoes this, unless somebody else
    has set it meanwhile."""
    attributes = vars(thing)
    had, previous = name in attributes, attributes.get(name)
    setattr(thing, name, value)

    def undo() -> None:
        if vars(thing).get(name) is not value:
            return
        if had:
            setattr(thing, name, previous)
        else:
            delattr(thing, name)

    return undo


def _same(thing: Any) -> Any:
    return thing
