"""A sheet of numbers: each is given, or follows from others by the formula of its name."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from pipeprof.errors import UsageError
from pipeprof.model import SizingFigure, SizingInput
from pipeprof.sizing.formulas import FORMULAS


class Sheet:
    """What is given, and all that follows from it."""

    def __init__(
        self, given: Mapping[str, SizingInput], scaled: Mapping[str, float] | None = None
    ) -> None:
        """``scaled``: number, given or found → the factor by which it is to be changed."""
        self._given, self._scaled = given, scaled or {}
        self._found: dict[str, float | None] = {}

    def value(self, name: str) -> float | None:
        """In its base unit; ``None`` when what it follows from is not known."""
        if name not in self._found:
            value = self._given[name].value if name in self._given else self.follows(name)
            self._found[name] = None if value is None else value * self._scaled.get(name, 1.0)
        return self._found[name]

    def values(self, *names: str) -> dict[str, float]:
        """Those of ``names`` that are known."""
        return {name: value for name in names if (value := self.value(name)) is not None}

    def figure(self, name: str) -> SizingFigure | None:
        """With its formula, or who gave it."""
        value, formula = self.value(name), FORMULAS[name]
        if value is None:
            return None
        text, numbers, source = formula.text, self.values(*formula.needs), formula.source
        if name in self._given:
            text, numbers, source = "given", {}, self._given[name].origin
        return SizingFigure(name, value, formula.unit, text, numbers, source, formula.note)

    def wants(self, *names: str) -> tuple[str, ...]:
        """The inputs for lack of which any of ``names`` is not known."""
        lacking: dict[str, None] = {}
        for name in names:
            if self.value(name) is None:
                formula = FORMULAS.get(name)
                lacking |= dict.fromkeys(self.wants(*formula.needs) if formula else (name,))
        return tuple(lacking)

    def follows(self, name: str) -> float | None:
        """By its formula, also where it is given; ``None``: not, as something lacks.

        Raises `UsageError` when the numbers lead nowhere, as a division by zero does."""
        if name not in FORMULAS:
            return None
        formula = FORMULAS[name]
        numbers = self.values(*formula.needs)
        if len(numbers) < len(formula.needs):
            return None
        try:
            value = formula(**numbers)
        except (ZeroDivisionError, OverflowError, ValueError):
            value = float("nan")
        if not isfinite(value):
            told = ", ".join(f"{each} {number:g}" for each, number in numbers.items())
            raise UsageError(f"{name.replace('_', ' ')} cannot be had from {told}; check these.")
        return value
