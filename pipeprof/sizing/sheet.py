"""A sheet of formulas: a number is given, or follows from others by the formula of its name.

A formula is a function whose arguments are named as the numbers it needs, whose annotations are
their units, and whose docstring's first line is the formula itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from math import isfinite
from types import ModuleType

from pipeprof.errors import UsageError
from pipeprof.model import SizingFigure, SizingInput
from pipeprof.sizing.quantities import UNITS

Formula = Callable[..., float]


def formulas_of(module: ModuleType) -> dict[str, Formula]:
    """Name → formula, in the order in which ``module`` has them."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }


def unit_of(formula: Formula, name: str = "return") -> str:
    """Of what it returns, or of its argument ``name``; as in `UNITS`."""
    return UNITS[formula.__annotations__[name]]


class Sheet:
    """What is given, and all that follows from it."""

    def __init__(
        self,
        given: Mapping[str, SizingInput],
        formulas: Mapping[str, Formula],
        scaled: Mapping[str, float] | None = None,
    ) -> None:
        """``scaled``: number, given or found → the factor by which it is to be changed."""
        self._given, self._formulas = given, formulas
        self._scaled = scaled or {}
        self._found: dict[str, float | None] = {}

    def value(self, name: str) -> float | None:
        """In its base unit; ``None`` when what it follows from is not known."""
        if name not in self._found:
            self._found[name] = None  # a circle of formulas leads nowhere
            value = self._given[name].value if name in self._given else self._follows(name)
            self._found[name] = None if value is None else value * self._scaled.get(name, 1.0)
        return self._found[name]

    def figure(self, name: str) -> SizingFigure | None:
        """By its formula, also where it is given."""
        value, formula = self.value(name), self._formulas[name]
        if value is None:
            return None
        numbers = {each: self.value(each) for each in _arguments(formula)}
        known = {each: number for each, number in numbers.items() if number is not None}
        told = inspect.getdoc(formula) or ""
        first, _, rest = told.partition("\n\n")
        note, _, source = rest.partition("Source: ")
        if name in self._given:
            first, known, source = "given", {}, self._given[name].origin
        return SizingFigure(
            name, value, unit_of(formula), first, known, _one_line(source), _one_line(note)
        )

    def wants(self, name: str) -> tuple[str, ...]:
        """The inputs for lack of which ``name`` is not known."""
        if self.value(name) is not None:
            return ()
        if name not in self._formulas:
            return (name,)
        lacking = [want for each in _arguments(self._formulas[name]) for want in self.wants(each)]
        return tuple(dict.fromkeys(lacking))

    def _follows(self, name: str) -> float | None:
        formula = self._formulas.get(name)
        if formula is None:
            return None
        numbers = {each: self.value(each) for each in _arguments(formula)}
        if None in numbers.values():
            return None
        try:
            value = formula(**numbers)
        except (ZeroDivisionError, OverflowError, ValueError):
            value = float("nan")
        if not isfinite(value):
            told = ", ".join(f"{each} {number:g}" for each, number in numbers.items())
            raise UsageError(f"{name.replace('_', ' ')} cannot be had from {told}; check these.")
        return value


def _arguments(formula: Formula) -> list[str]:
    return list(inspect.signature(formula).parameters)


def _one_line(text: str) -> str:
    return " ".join(text.split())
