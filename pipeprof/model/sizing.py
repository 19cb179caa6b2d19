"""Define the requirements of a cluster: each figure with its formula and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

SIZING_SCHEMA: Final = "pipeprof.sizing/1"


@dataclass(frozen=True)
class SizingInput:
    """An input that was given, taken from a profile or a table, or assumed."""

    name: str
    value: float
    """Value in ``unit``."""
    unit: str
    """``B``, ``B/s``, ``s``, ``1/s``, ``share`` (0..1), ``FLOP``, ``FLOP/s``, ``$``, or nothing for
    a count."""
    origin: str
    """Source of the value."""


@dataclass(frozen=True)
class SizingFigure:
    """A requirement that was computed."""

    name: str
    value: float
    """Value in ``unit``."""
    unit: str
    """Unit as in `SizingInput`."""
    formula: str
    numbers: Mapping[str, float]
    """Variables of the formula, each in its base unit."""
    source: str
    note: str = ""
    """What the figure means."""


@dataclass(frozen=True)
class Sizing:
    """The requirements for one number of accelerators. ``pipeprof size --json`` prints a list of
    these."""

    gpus: float
    """Number of accelerators."""
    inputs: tuple[SizingInput, ...]
    sections: Mapping[str, tuple[SizingFigure, ...]]
    """Section title → its figures."""
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Figure that could not be computed → the inputs that it needs."""
    what_if: str | None = None
    """The hypothetical change that these figures assume."""
    schema: Literal["pipeprof.sizing/1"] = SIZING_SCHEMA

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
