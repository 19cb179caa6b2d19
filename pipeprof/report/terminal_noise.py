"""By how much runs of one setting differ on this machine, and what that leaves open."""

from __future__ import annotations

from math import expm1

from pipeprof.model import RunNoise, SweepResult
from pipeprof.report.phrases import settings
from pipeprof.report.terminal_gains import trial_at
from pipeprof.units import format_count, format_duration, percent


def too_unsteady(noise: RunNoise) -> list[tuple[str, str]]:
    """That single runs cannot tell the settings apart, and what would."""
    if noise.settled or noise.apart is None:
        return []
    longer = "longer trials would not: what runs differ by lasts longer than they would"
    if noise.needed_trial_s is not None:
        longer = f"trials of {format_duration(noise.needed_trial_s)} would (--trial-time)"
    said = (
        f"two runs of one setting differ by up to {percent(expm1(noise.half_width))} here (95 %), "
        f"and the best setting and the next by {percent(expm1(noise.apart))} or less: single "
        f"trials cannot tell them apart; {longer}"
    )
    return [("unsteady", said)]


def run_to_run(sweep: SweepResult, label: str, noise: RunNoise) -> list[tuple[str, str]]:
    """What the trial that was run again says, if the file is what it should be."""
    trial = trial_at(sweep, noise.trial)
    if trial is None:
        return []
    said = (
        f"{label}: {settings(trial.config)}, run again, gave {format_count(noise.samples_per_s)} "
        f"samples/s instead of {format_count(noise.first_samples_per_s)}. By this, and by how far "
        "trials drift, two runs of one setting differ by up to "
        f"{percent(expm1(noise.half_width))} (95 %): intervals are of one next run, and hold it"
    )
    return [("run to run", said)]
