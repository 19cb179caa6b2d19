"""Simulate a job of ranks like the one that a profile is of."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.job.scale import LEAST_BATCHES, ROUNDS, STEPS, RankCosts, scale_job
from pipeprof.errors import UsageError
from pipeprof.model import Profile, SizingFigure
from pipeprof.sizing.sheet import Sheet

SIMULATED_JOB: Final = "The job, simulated from the profile"
_FORMULA: Final = (
    f"{STEPS} steps, each ended by the slowest rank; the recorded batches, drawn {ROUNDS} times"
)
_SOURCE: Final = "pipeprof, docs/method/ranks.md."
_READ: Final = ("batch_size", "bytes_per_sample", "physical_share", "storage_bandwidth")
_LOSSES: Final = {
    "job_lost_to_sync": ("sync", "Exchanging gradients, beyond the steps of the profile."),
    "job_lost_to_slowest_step": ("slowest_step", "Waiting for the slowest step of any rank."),
    "job_lost_to_loading": ("loading", "Waiting for data, if all batches took equally long."),
    "job_lost_to_tails": ("tails", "Waiting because some rank has a late batch."),
    "job_lost_to_storage": ("storage", "Waiting as all want more than the storage bandwidth."),
}
"""Figure → field of `pipeprof.analyze.job.scale.ScaledJob`, and what it means."""


def simulated_job(sheet: Sheet, profile: Profile) -> tuple[SizingFigure, ...]:
    """Return the figures of a job of ``gpus`` ranks.

    Raises:
        UsageError: The profile recorded too few batches.
    """
    costs = RankCosts.of(profile)
    if costs is None:
        raise UsageError(
            f"--simulate needs a profile that recorded at least {LEAST_BATCHES} batches in its "
            "workers; profile a longer run"
        )
    used, read = sheet.values("gpus", "sync_s"), sheet.values(*_READ)
    storage_s = 0.0
    if len(read) == len(_READ):
        used |= read
        a_step = used["gpus"] * used["batch_size"] * used["bytes_per_sample"]
        storage_s = a_step * used["physical_share"] / used["storage_bandwidth"]
    job = scale_job(costs, int(used["gpus"]), storage_s, used["sync_s"])
    low, high = job.useful_interval
    figures = {
        "job_utilisation": (job.useful, "share", "Time in undelayed steps."),
        "job_utilisation_low": (low, "share", "With the next figure, a 95 % interval."),
        "job_utilisation_high": (high, "share", ""),
        "job_batches_per_s": (used["gpus"] / job.cycle_s, "1/s", "Of all ranks together."),
    }
    known = {"storage": storage_s > 0, "sync": used["sync_s"] > 0}
    for name, (field, note) in _LOSSES.items():
        if known.get(field, True):
            figures[name] = (getattr(job, field), "share", note)
    return tuple(
        SizingFigure(name, value, unit, _FORMULA, used, _SOURCE, note)
        for name, (value, unit, note) in figures.items()
    )
