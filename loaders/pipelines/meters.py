"""Define what an adapter of a library finds: stages that can be read, and how to leave them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from types import BuiltinFunctionType
from typing import Any

from pipeprof.measure.call_timer import Reading, replace_attribute
from pipeprof.model import MeasuredBy


@dataclass(frozen=True)
class StageMeter:
    """A stage whose figures can be read. The fields are those of `PipelineStage`."""

    name: str
    kind: str
    read: Callable[[], Reading]
    concurrency: int | None = None
    pool: str = ""
    pool_size: int | None = None
    measured_by: MeasuredBy = "pipeprof"


@dataclass(frozen=True)
class Attached:
    """The stages of one pipeline, from its sources to the batch."""

    library: str
    meters: tuple[StageMeter, ...]
    undo: tuple[Callable[[], None], ...] = ()
    """Functions that remove the timers."""
    notes: tuple[str, ...] = ()
    """What cannot be measured, and why."""


class Timers:
    """Collects the stages of a pipeline while an adapter attaches timers to them, from the batch
    to the sources."""

    def __init__(self) -> None:
        self._meters: list[StageMeter] = []
        self._undo: list[Callable[[], None]] = []
        self._notes: list[str] = []

    def add(self, meter: StageMeter) -> None:
        self._meters.append(meter)

    def replace(self, thing: Any, name: str, value: Any) -> None:
        """Set an attribute of ``thing`` until the pass ends."""
        self._undo.append(replace_attribute(thing, name, value))

    def note(self, text: str) -> None:
        self._notes.append(text)

    def attached(self, library: str) -> Attached:
        meters = _with_distinct_names(reversed(self._meters))
        return Attached(library, meters, tuple(self._undo), tuple(self._notes))


def attach(library: str, visit: Callable[[Timers], None]) -> Attached:
    """Return the stages to which ``visit`` attaches timers. If it fails, none stays attached."""
    timers = Timers()
    try:
        visit(timers)
    except Exception:
        for undo in timers.attached(library).undo:
            undo()
        raise
    return timers.attached(library)


def _with_distinct_names(meters: Iterable[StageMeter]) -> tuple[StageMeter, ...]:
    """Number the stages whose name another one has, too."""
    found: dict[str, StageMeter] = {}
    for meter in meters:
        name, number = meter.name, 1
        while name in found:
            number += 1
            name = f"{meter.name} #{number}"
        found[name] = replace(meter, name=name)
    return tuple(found.values())


def function_name(function: Any) -> str:
    """Return the name by which a user knows a function, without values that it holds."""
    while isinstance(function, partial):
        function = function.func
    own = "__name__" if isinstance(function, BuiltinFunctionType) else "__qualname__"
    name = getattr(function, own, None) or type(function).__qualname__
    return str(name).rpartition("<locals>.")[2]
