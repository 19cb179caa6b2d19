"""Take from a rank's profile what its job needs: a job may have thousands of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask, warmed_up
from pipeprof.analyze.profile.stall_attribution import OTHER_LOADERS, causes
from pipeprof.model import Profile, Unjudged

_USED = (
    *("index", "epoch", "nth", "epoch_batches", "asked_s", "delivered_s", "done_s"),
    *("device_wait_s", "pause_s", "pause_kind", "rested", "fetch_start_s", "fetch_end_s"),
    "others_s",
)
"""Columns that are used where causes are not charged step by step."""
_WARMUP = 8
"""Batches at the beginning of an epoch that are left out, as workers are only starting."""
_EPOCH = 1 << 32
"""More batches than an epoch has."""


@dataclass(frozen=True)
class RankSteps:
    """One rank of a job, and its steps. Arrays have the shape [steps], times are in seconds."""

    name: str
    """Of the loader."""
    rank: int
    host: str | None
    job_id: str | None
    world_size: int | None
    cores: tuple[int, ...]
    """Cores that its affinity allows; empty for unknown."""
    file: str
    """Path of its profile as the user gave it."""
    created: str
    version: str
    """Of pipeprof."""
    threshold: float
    """Starved fraction from which a loader counts as starved."""
    starved_fraction: float
    unjudged: Unjudged
    """Why its waits are not those of its training; then it has no steps here."""
    samples: float
    """Samples of a batch, in the mean."""
    pace_s: float
    """Time in which its workers can build a batch; 0 without workers."""
    steps: npt.NDArray[np.int64]
    """Epoch and number of each step, as one number, in ascending order."""
    stall_s: Floats
    """How long it waited for its batches, those of other loaders included."""
    rest_s: Floats
    """What of each cycle is not the stall: the step, with what it waited for other ranks."""
    paused: Mask
    """Steps that are long as if there were a pause in them, or that come after one. Where it is so
    for one rank alone, it waited for another one."""
    causes: Mapping[str, Floats] | None
    """Cause → seconds of the stall of each step; ``None`` to charge all steps by ``blame``."""
    blame: Mapping[str, float]
    """Cause → share of its stall. 0..1"""

    @classmethod
    def of(cls, profile: Profile, file: str, exact: bool = True) -> RankSteps:
        """Return the steps of ``profile``, which has a rank, without warm-up and named pauses.

        Args:
            profile: The profile of one loader of a rank.
            file: Its path as the user gave it.
            exact: Charge each step to what its batch waited for, which takes much longer.
        """
        environment, job = profile.environment, profile.environment.job
        assert environment.rank is not None
        table = Columns.of(profile.batches, None if exact else _USED)
        paused_in_name = (table.paused_s > 0) & (table.pause_kind >= 0)
        unjudged = profile.diagnosis.unjudged
        rows = np.flatnonzero(warmed_up(table, _WARMUP) & ~paused_in_name & (not unjudged))
        steps = (table.epoch[rows] * _EPOCH + table.nth[rows]).astype(np.int64)
        steps, first = np.unique(steps, return_index=True)
        rows = rows[first]
        rate = profile.throughput.batches_per_s
        return cls(
            name=profile.name,
            rank=environment.rank,
            host=environment.host,
            job_id=job.job_id if job else None,
            world_size=job.world_size if job else None,
            cores=environment.placement.cores if environment.placement else (),
            file=file,
            created=profile.created,
            version=environment.pipeprof,
            threshold=profile.diagnosis.threshold,
            starved_fraction=profile.diagnosis.starved_fraction,
            unjudged=unjudged,
            samples=profile.throughput.samples_per_s / rate if rate else 0.0,
            pace_s=_pace(table, profile.config.num_workers),
            steps=steps,
            stall_s=table.starved_s[rows],
            rest_s=(table.done_s - table.asked_s - table.starved_s)[rows],
            paused=((table.paused_s > 0) | np.isfinite(table.rested))[rows],
            causes=_causes(table, profile, rows) if exact else None,
            blame=profile.blame,
        )

    def charged(self, steps: Mask, rows: npt.NDArray[np.intp]) -> dict[str, float]:
        """Return cause → seconds of the stall in those ``rows`` that ``steps`` selects."""
        chosen = rows[steps]
        if self.causes is not None:
            return {cause: float(each[chosen].sum()) for cause, each in self.causes.items()}
        stall_s = float(self.stall_s[chosen].sum())
        return {cause: share * stall_s for cause, share in self.blame.items()}


def _causes(table: Columns, profile: Profile, rows: npt.NDArray[np.intp]) -> dict[str, Floats]:
    """Return cause → stall of each step. Where the profile names but one cause, such as a storage
    that all workers share, this is charged for all: no single batch shows it."""
    charges = {
        cause: seconds[rows] for cause, seconds in causes(table, profile.core_wait_share)[0].items()
    }
    own = [cause for cause in profile.blame if cause != OTHER_LOADERS]
    if len(own) == 1:
        charges = {own[0]: np.sum(list(charges.values()), axis=0)}
    others_s = table.others_stall_s[rows]
    return charges | ({OTHER_LOADERS: others_s} if others_s.any() else {})


def _pace(table: Columns, workers: int) -> float:
    made_s = table.made_s[np.isfinite(table.made_s)]
    return float(made_s.mean()) / workers if workers and len(made_s) else 0.0
