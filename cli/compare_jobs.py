"""Load what `pipeprof compare` needs of a job, whose ranks are in one folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipeprof.cli.gather import gather
from pipeprof.errors import ProfileError
from pipeprof.store import SWEEP_FILE

if TYPE_CHECKING:
    from pipeprof.model import JobFigures, Profile, TrainingJob


def is_job(file: str) -> bool:
    """Return whether ``file`` is a folder, and not that of a sweep."""
    return os.path.isdir(file) and not os.path.isfile(os.path.join(file, SWEEP_FILE))


def load_job(folder: Path) -> tuple[dict[str, tuple[Path, Profile]], dict[str, JobFigures]]:
    """Return two mappings from each loader of a job: to the profile of the first rank, and to the
    figures of all. A step with its wait lasts as long for the first rank as for all.

    Raises:
        ProfileError: The folder does not hold the profiles of two ranks of one job.
    """
    from pipeprof.model import Profile
    from pipeprof.store import load

    runs, figures = {}, {}
    for job in gather(folder):
        if not job.ranks:
            raise ProfileError(f"{folder}: the ranks of {job.name} have no step in common.")
        file = Path(min(job.ranks, key=lambda rank: rank.rank).file)
        profile = load(file)
        assert isinstance(profile, Profile)
        runs[job.name], figures[job.name] = (file, profile), _figures(str(folder), job)
    return runs, figures


def _figures(folder: str, job: TrainingJob) -> JobFigures:
    from pipeprof.analyze.job.verdict import host_shares
    from pipeprof.model import JobFigures

    slowed_by = ""
    if job.straggling == "rank":
        slowed_by = f"rank {job.ranks[0].rank}"
    elif job.straggling == "host":
        shares = host_shares(job.ranks)
        slowed_by = max(shares, key=shares.__getitem__)
    return JobFigures(
        folder=folder,
        name=job.name,
        ranks=job.world_size,
        samples_per_s=job.samples_per_s,
        starved_fraction=job.starved_fraction,
        starved_interval=job.starved_interval,
        straggling=job.straggling,
        slowed_by=slowed_by,
        bottleneck=next(iter(job.blame), None),
    )
