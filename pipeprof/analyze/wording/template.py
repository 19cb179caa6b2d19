"""Fill templates with figures: values get units, and optional parts are left out.

``{made_s:duration}`` prints a figure in its unit, ``{workers:n worker}`` a count with its noun, and
``{samples:n index|indices}`` one with an irregular plural. A part in guillemets ``«…»`` is left out
where one of its figures is unknown. ``{small:if}`` and ``{small:unless}`` print nothing; they leave
out their part where the figure is false, or true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final, NamedTuple

from pipeprof.units import (
    capital,
    counted,
    format_binary,
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
    percent,
)

Figures = Mapping[str, object]
"""Values by name: numbers, flags, and names that the user gave. ``None`` or NaN is unknown."""

_PART: Final = re.compile("«([^»]*)»")
_UNITS: Final[Mapping[str, Callable[[Any], str]]] = {
    "binary": format_binary,
    "bytes": format_bytes,
    "capital": capital,
    "count": format_count,
    "duration": format_duration,
    "percent": percent,
    "points": lambda share: f"{share * 100:.1f}",
    "rate": format_rate,
    "share": format_share,
    "times": lambda ratio: f"{format_count(ratio)}×",
}


class FindingText(NamedTuple):
    """The templates of a finding."""

    title: str
    evidence: str
    fix: str
    """What to change, starting from the user's present settings."""


@dataclass(frozen=True)
class ProposalText:
    """The templates of one proposed change."""

    current: str
    proposed: str
    why: str
    code: str = ""
    settle: str = ""
    """Command of a short run that would settle what this run leaves open."""


def fill(template: str, figures: Figures, run: object = None) -> str:
    """Return ``template`` with its names replaced by ``figures``, or by attributes of ``run``. A
    name that neither has is an unknown figure."""
    pieces = _PART.split(template)  # every second one is a part
    return "".join(_piece(text, figures, run, bool(nth % 2)) for nth, text in enumerate(pieces))


def without_parts(template: str) -> str:
    """Return the ``template`` without its optional parts."""
    return _PART.sub("", template)


def _piece(text: str, figures: Figures, run: object, optional: bool) -> str:
    formatter = _Formatter(figures, run)
    filled = formatter.format(text)
    return "" if optional and formatter.dropped else filled


class _Formatter(Formatter):
    def __init__(self, figures: Figures, run: object) -> None:
        self._figures, self._run = figures, run
        self.dropped = False
        """True once a figure is unknown or a condition does not hold."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        name = str(key)
        return self._figures[name] if name in self._figures else getattr(self._run, name, None)

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Look up a field; attributes of an unknown figure are unknown, too."""
        try:
            return super().get_field(field_name, args, kwargs)
        except (AttributeError, TypeError) as error:
            if getattr(error, "obj", None) is not None:
                raise
            return None, field_name

    def format_field(self, value: Any, spec: str) -> str:
        unknown = value is None or value != value
        if spec in ("if", "unless"):
            self.dropped |= (unknown or not value) == (spec == "if")
            return ""
        if unknown:
            self.dropped = True
            return "unknown"
        if spec.startswith("n "):
            return counted(value, *spec[2:].split("|"))
        return _UNITS[spec](value) if spec in _UNITS else format(value, spec)
