"""Do on a node what the runner of a sweep does here, in functions that can be sent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pipeprof.model import PairedRuns, SweepSpec
from pipeprof.sweep.pairs import paired_spec, run_pairs
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.trial import TrialRun, run_trial


def run_elsewhere(
    spec: SweepSpec,
    setting: TrialSetting,
    storage_options: Mapping[str, Any] | None,
    splits: Collection[int] | None,
    lone_requests: bool,
) -> TrialRun:
    """Run a trial on a node, from where nobody hears how far it is."""
    return run_trial(spec, setting, storage_options, splits=splits, lone_requests=lone_requests)


def run_pairs_elsewhere(
    spec: SweepSpec,
    storage_options: Mapping[str, Any] | None,
    doubt: tuple[int, int],
    settings: tuple[TrialSetting, TrialSetting],
    pairs: int,
    until: Callable[[PairedRuns], bool],
) -> PairedRuns:
    """Run two settings alternately on a node."""

    def run_briefly(setting: TrialSetting, number: int, planned: int) -> float:
        brief = paired_spec(spec)
        profile, *_ = run_trial(brief, setting, storage_options, lone_requests=False)
        return profile.throughput.samples_per_s

    return run_pairs(run_briefly, doubt, settings, pairs, until)
