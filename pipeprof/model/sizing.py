"""What a cluster must have, number by number, each with its formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

SIZING_SCHEMA: Final = "pipeprof.sizing/1"


@dataclass(frozen=True)
class SizingInput:
    """A number that was given, taken from a profile or a table, or assumed."""

    name: str
    value: float
    """In ``unit``."""
    unit: str
    """``B``, ``B/s``, ``s``, ``1/s``, ``share`` (0..1), ``FLOP``, ``FLOP/s``, ``$``, or nothing for
    a count."""
    origin: str
    """Who says so."""


@dataclass(frozen=True)
class SizingFigure:
    """A number that sizing found."""

    name: str
    value: float
    """In ``unit``."""
    unit: str
    """As in `SizingInput`."""
    formula: str
    numbers: Mapping[str, float]
    """What stands in the formula, each in its base unit."""
    source: str
    note: str = ""
    """What the number means."""


@dataclass(frozen=True)
class Sizing:
    """For one number of accelerators. ``pipeprof size --json`` prints a list of these."""

    gpus: float
    """Accelerators."""
    inputs: tuple[SizingInput, ...]
    sections: Mapping[str, tuple[SizingFigure, ...]]
    """Title → figures."""
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """SizingFigure that could not be had → the inputs that it wants."""
    what_if: str | None = None
    """The change under which this holds."""
    schema: Literal["pipeprof.sizing/1"] = SIZING_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
