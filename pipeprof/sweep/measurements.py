"""What a sweep measures once more at the best setting of each data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pipeprof.errors import PipeprofError
from pipeprof.model import SweepResult, SweepSpec, Trial
from pipeprof.sweep.local_cache import measure_local_cache
from pipeprof.sweep.plan import SweepPlan, TrialSetting
from pipeprof.sweep.row_orders import measure_orders
from pipeprof.sweep.trial import measure_headspace


@dataclass(frozen=True)
class Measurement:
    """Something that is measured at a setting, and the field of the result that it goes to."""

    field: str
    """A mapping of `SweepResult` from URLs."""
    measure: Callable[..., Any]
    """Called with the spec, the setting and the storage options."""
    of_trial: bool = False
    """Whether it is also called with the setting's trial, before the storage options."""
    optional: str = ""
    """What it finds out, where the sweep is whole without it: a failure is a note."""

    def has(self, result: SweepResult, url: str) -> bool:
        """Return whether it was measured. What failed is tried again when a sweep is resumed."""
        return url in getattr(result, self.field)

    def add(
        self, result: SweepResult, plan: SweepPlan, setting: TrialSetting, trial: Trial
    ) -> SweepResult:
        """Return ``result`` with what is measured, or a note why that failed. Raises the error
        where it is not `optional`."""
        unknown = f"{self.optional} {trial.url} is unknown:"
        notes = tuple(note for note in result.notes if not note.startswith(unknown))
        trials = (trial,) if self.of_trial else ()
        try:
            measured = plan.engine.call(
                self.measure, plan.spec, setting, *trials, plan.storage_options
            )
        except PipeprofError as error:
            if not self.optional:
                raise
            return replace(result, notes=(*notes, f"{unknown} {error}"))
        changed: dict[str, Any] = {self.field: {**getattr(result, self.field), trial.url: measured}}
        return replace(result, notes=notes, **changed)


def measurements(spec: SweepSpec) -> list[Measurement]:
    """Return what ``spec`` asks for besides its trials."""
    asked = []
    if spec.script is None and spec.conversion is None:
        asked.append(Measurement("headspace", measure_headspace))
    if spec.local_cache is not None:
        asked.append(
            Measurement("local_cache", measure_local_cache, True, "What a local cache brings to")
        )
    if spec.shuffle:
        asked.append(
            Measurement("row_orders", measure_orders, optional="What orders of rows cost for")
        )
    return asked
