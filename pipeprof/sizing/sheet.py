"""Evaluate formulas: each number is given, or computed from others by its formula."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from pipeprof.errors import UsageError
from pipeprof.model import SizingFigure, SizingInput
from pipeprof.sizing.formulas import FORMULAS


class Sheet:
    """The given numbers, and all that can be computed from them."""

    def __init__(
        self, given: Mapping[str, SizingInput], scaled: Mapping[str, float] | None = None
    ) -> None:
        """``scaled`` has factors by which numbers, given or computed, are changed."""
        self._given, self._scaled = given, scaled or {}
        self._values: dict[str, float | None] = {}

    def value(self, name: str) -> float | None:
        """Return the number in its base unit; ``None`` where inputs are missing."""
        if name not in self._values:
            value = self._given[name].value if name in self._given else self.computed(name)
            self._values[name] = None if value is None else value * self._scaled.get(name, 1.0)
        return self._values[name]

    def values(self, *names: str) -> dict[str, float]:
        """Return the values of those ``names`` that are known."""
        return {name: value for name in names if (value := self.value(name)) is not None}

    def figure(self, name: str) -> SizingFigure | None:
        """Return the number with its formula or origin; ``None`` where inputs are missing."""
        value, formula = self.value(name), FORMULAS[name]
        if value is None:
            return None
        text, numbers, source = formula.text, self.values(*formula.needs), formula.source
        if name in self._given:
            text, numbers, source = "given", {}, self._given[name].origin
        return SizingFigure(name, value, formula.unit, text, numbers, source, formula.note)

    def missing(self, *names: str) -> tuple[str, ...]:
        """Return the missing inputs that any of ``names`` needs."""
        inputs: dict[str, None] = {}
        for name in names:
            if self.value(name) is None:
                formula = FORMULAS.get(name)
                inputs |= dict.fromkeys(self.missing(*formula.needs) if formula else (name,))
        return tuple(inputs)

    def computed(self, name: str) -> float | None:
        """Return the value of the formula, also for a given number; ``None`` if inputs are missing,
        or nothing limits it. Raises `UsageError` when the result is not finite, as after a division
        by zero."""
        if name not in FORMULAS:
            return None
        formula = FORMULAS[name]
        numbers = self.values(*formula.needs)
        if len(numbers) < len(formula.needs) or numbers.get(formula.unlimited_without) == 0:
            return None
        try:
            value = formula(**numbers)
        except (ZeroDivisionError, OverflowError, ValueError):
            value = float("nan")
        if not isfinite(value):
            listed = ", ".join(f"{each} {number:g}" for each, number in numbers.items())
            raise UsageError(
                f"{name.replace('_', ' ')} cannot be computed from {listed}; check them"
            )
        return value
