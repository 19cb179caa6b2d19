"""How wrong the simulated pace of 2, 4 and 8 ranks is, from the profile of one of them alone.

    python -m benchmarks.scale_ranks [--jobs 8] [--seed N]

Jobs are drawn at random. Their batches and steps sleep, so that eight ranks fit on two cores; ranks
wait for one another in a real all-reduce by gloo. Each job is run twice, and what the two differ by
is the noise. What the all-reduce takes is measured by a job that is never starved. The control is
that ranks do not hinder one another: a job is as fast as one rank.
"""

from __future__ import annotations

import multiprocessing
import random
import secrets
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import cast

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.analyze.job.scale import RankCosts, ScaledJob, scale_job
from pipeprof.model import Profile

RANKS, STEPS, WARMUP = (2, 4, 8), 160, 20
MEDIAN_BAR = 0.05
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Job:
    """Times are in seconds. Batches and steps vary log-normally."""

    workers: int
    prefetch: int
    batch_s: float
    batch_spread: float
    step_s: float
    step_spread: float

    @property
    def text(self) -> str:
        return (
            f"{self.workers} × {self.prefetch}, batches {self.batch_s * 1e3:3.0f} ms ± "
            f"{self.batch_spread:.2f}, steps {self.step_s * 1e3:3.0f} ms ± {self.step_spread:.2f}"
        )


BARE = Job(1, 2, 0.010, 0.0, 0.040, 0.0)
"""A job that never waits for data shows what the exchange takes, and so many processes on few
cores."""


def draw(seed: int) -> Job:
    chance = random.Random(seed)
    workers, step_s = chance.choice([0, 1, 1, 2, 2, 3, 4]), chance.uniform(0.03, 0.08)
    # what a worker takes for a batch, against what it has time for
    load = chance.uniform(0.4, 1.3) * max(1, workers)
    return Job(
        workers, chance.randint(1, 3), load * step_s, chance.uniform(0.0, 0.6), step_s,
        chance.choice([0.0, chance.uniform(0.0, 0.15)]),
    )  # fmt: skip


def lasts(mean_s: float, spread: float, chance: random.Random) -> float:
    return mean_s * chance.lognormvariate(-spread * spread / 2, spread)


class Sleeps(Dataset[torch.Tensor]):
    def __init__(self, job: Job, seed: int) -> None:
        self._job, self._seed = job, seed

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, index: int) -> torch.Tensor:
        chance = random.Random(f"{self._seed} {index}")
        time.sleep(lasts(self._job.batch_s, self._job.batch_spread, chance))
        return torch.tensor(float(index))


def train(job: Job, seed: int, rank: int, ranks: int, store: Path, answer: Connection) -> None:
    """Train as one rank, and send the seconds of a step; and alone the profile."""
    if ranks > 1:
        dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=ranks)
    chance = random.Random(f"{seed} {rank} steps")
    loader = DataLoader(
        Sleeps(job, seed * 100 + rank), num_workers=job.workers,
        prefetch_factor=job.prefetch if job.workers else None,
    )  # fmt: skip
    watched = pipeprof.wrap(loader, whole=True) if ranks == 1 else None
    begun_s = 0.0
    for step, batch in enumerate(watched or loader):
        if step == WARMUP:
            begun_s = time.perf_counter()
        time.sleep(lasts(job.step_s, job.step_spread, chance))
        if ranks > 1:
            dist.all_reduce(batch)
    # the last batches were made while none followed
    cycle_s = (time.perf_counter() - begun_s) / (STEPS - WARMUP)
    if rank == 0:
        answer.send((cycle_s, watched.profile() if watched is not None else None))


def run(job: Job, seed: int, ranks: int) -> tuple[float, Profile | None]:
    """Return the seconds of a step of ``ranks`` that train together, and the profile of one."""
    ours, theirs = _FORK.Pipe()
    with TemporaryDirectory() as folder:
        members = [
            _FORK.Process(
                target=train, args=(job, seed, rank, ranks, Path(folder, "store"), theirs)
            )
            for rank in range(ranks)
        ]  # fmt: skip
        for member in members:
            member.start()
        theirs.close()
        found = cast("tuple[float, Profile | None]", ours.recv())
        for member in members:
            member.join()
    return found


def report(
    errors: Sequence[float], controls: Sequence[float], noise: Sequence[float], held: int
) -> int:
    middle = median(map(abs, errors))
    print(
        f"{len(errors)} jobs: error {middle:.1%} in the median (bar {MEDIAN_BAR:.0%}), at most "
        f"{max(map(abs, errors)):.1%}; {held} intervals hold the mean of two runs, which differ by "
        f"{median(noise):.1%} in the median; control {median(map(abs, controls)):.1%}, at most "
        f"{max(map(abs, controls)):.1%}"
    )
    return int(middle > MEDIAN_BAR)


def main() -> int:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    arguments = parser.parse_args()
    exchange_s = {ranks: run(BARE, arguments.seed, ranks)[0] - BARE.step_s for ranks in RANKS}
    print(
        "exchange, where nobody is starved: "
        + ", ".join(
            f"{ranks} ranks {seconds * 1e3:.1f} ms" for ranks, seconds in exchange_s.items()
        )
    )
    errors, controls, noise, held = list[float](), list[float](), list[float](), 0
    for seed in range(arguments.seed, arguments.seed + arguments.jobs):
        job = draw(seed)
        alone_s, profile = run(job, seed, 1)
        costs = RankCosts.of(profile) if profile else None
        if costs is None:
            raise SystemExit(f"seed {seed}: the profile has too few batches")
        cells = []
        for ranks in RANKS:
            said: ScaledJob = scale_job(costs, ranks, sync_s=exchange_s[ranks])
            truths = [run(job, seed + 7919 * each, ranks)[0] for each in (1, 2)]
            truth_s, (low_s, high_s) = mean(truths), said.cycle_interval_s
            errors.append(said.cycle_s / truth_s - 1)
            controls.append((alone_s + exchange_s[ranks]) / truth_s - 1)
            noise.append(abs(truths[1] / truths[0] - 1))
            held += low_s <= truth_s <= high_s
            cells.append(f"{ranks}: {said.cycle_s * 1e3:5.1f} for {truth_s * 1e3:5.1f} ms")
        print(f"{seed:>7}  {job.text:58}  {'   '.join(cells)}", flush=True)
    return report(errors, controls, noise, held)


if __name__ == "__main__":
    sys.exit(main())
