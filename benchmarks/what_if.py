"""Measures how good the answer of a guided sweep over formats, readers and settings together is.

    python -m benchmarks.what_if [--rounds N] [--seconds S] [--pairs N] [--mb N] [--seed N]

Six data sets of different kinds are generated. Each is swept twice over its formats, file sizes and
readers, numbers of workers and prefetching, with a training step drawn at random: once exhaustively
and once guided. Both answers are run again alternately, on the copies of the exhaustive sweep,
until the interval of their ratio is ±2 % or ``--pairs`` have run. *Behind* is by how much the
exhaustive answer is faster; it is 0 where both are the same. *Tried* includes the control run. All
files are in memory, and the default seed is the time.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeprof.analyze.sweep.recommend import best_trial
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.formats.readers import each_reader
from pipeprof.loaders.tensors import Ragged
from pipeprof.model import ConversionSpec, PairedRuns, SweepResult, SweepSpec, Trial
from pipeprof.sweep.guided import setting_of
from pipeprof.sweep.pairs import paired_spec, run_pairs
from pipeprof.sweep.plan import SweepPlan, TrialSetting, plan_sweep
from pipeprof.sweep.progress import SweepListener
from pipeprof.sweep.runner import run_sweep
from pipeprof.sweep.trial import run_trial
from pipeprof.units import percent

WORKERS, PREFETCH, STEPS_S = (0, 1, 2, 3, 4, 6), (1, 2, 4), (0.0, 0.002, 0.005, 0.01)
_NEAR, _FEW = 0.03, 0.25
"""Bars: how far the answer may be behind, and the share of the grid that may be tried."""
_EXACT = 0.02
"""Half width of the interval of *behind* that ends its pairs."""
_SIDE = 64


@dataclass(frozen=True)
class Case:
    """A data set, and what a sweep of it varies besides workers and prefetching."""

    kind: str
    stored: str
    """Format and compression."""
    formats: tuple[str, ...]
    readers: tuple[str, ...] = ("own",)
    batch_size: int = 256
    shard_bytes: tuple[int, ...] = ()
    columns: tuple[str, ...] | None = None
    transform: str | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.stored}"


CASES = (
    Case("tabular", "csv:gzip", ("parquet:zstd", "arrow"), ("own", "pandas")),
    Case("wide", "csv", ("parquet:zstd", "tfrecord"), ("own", "python"),
         columns=("x0", "x1", "label")),
    Case("tabular", "jsonl", ("csv", "parquet"), ("own", "pandas")),
    Case("images", "webdataset", ("parquet", "mds"), batch_size=16,
         transform="benchmarks.what_if:decode"),
    Case("tokens", "tfrecord", ("parquet:zstd", "arrow"), batch_size=64),
    Case("tabular", "parquet:zstd", ("arrow", "parquet"), shard_bytes=(250_000, 1_000_000)),
)  # fmt: skip
"""Their readers may be forked: a spawned worker takes seconds to start, and there are many."""


@dataclass(frozen=True)
class Answer:
    """What a sweep chose: the copy or none, the reader, the workers and the prefetching."""

    copy: str
    reader: str | None
    num_workers: int
    prefetch_factor: int | None

    @classmethod
    def of(cls, sweep: SweepResult, trial: Trial) -> Answer:
        copies = (
            {copy.url: copy.name for copy in sweep.conversion.copies} if sweep.conversion else {}
        )
        config = trial.config
        prefetch = config.prefetch_factor if config.num_workers else None
        name = copies.get(trial.data_url, "as it is")
        return cls(name, trial.reader, config.num_workers, prefetch)

    def __str__(self) -> str:
        by = f" by {self.reader}" if self.reader else ""
        return f"{self.copy}{by}, {self.num_workers} × {self.prefetch_factor or 0}"


@dataclass(frozen=True)
class Judged:
    """Both answers of a data set."""

    tried: float
    """Share of the grid that the guided sweep tried."""
    behind: float
    interval: tuple[float, float]
    """95 % interval of ``behind``."""


def decode(batch: dict[str, Any]) -> torch.Tensor:
    """Decode the JPEGs of a batch, and scale them to one size."""
    images: Ragged = batch["image"]
    pixels = []
    for row in range(len(images)):
        image = Image.open(io.BytesIO(images.bytes_at(row)))
        image.draft("RGB", (_SIDE, _SIDE))
        pixels.append(np.asarray(image.convert("RGB").resize((_SIDE, _SIDE))))
    return torch.from_numpy(np.stack(pixels))


def judge(case: Case, folder: Path, step_s: float, options: argparse.Namespace) -> Judged:
    """Sweep a data set twice, and compare the answers."""
    stored, _, compression = case.stored.partition(":")
    url = str(folder / "data")
    generate(GenerateSpec(url, case.kind, stored, options.mb * 1_000_000, options.seed,
                          compression=compression or None))  # fmt: skip
    plan, whole = _swept(case, url, folder / "whole", step_s, options.seconds, exhaustive=True)
    _, guided = _swept(case, url, folder / "guided", step_s, options.seconds, exhaustive=False)
    tried = len(guided.trials) / whole.planned
    chosen, best = (Answer.of(each, each.trials[_best(each)]) for each in (guided, whole))
    print(
        f"{case.name:<24}{step_s * 1e3:>4.0f} ms{whole.planned:>6}{len(guided.trials):>7}", end=""
    )
    if chosen == best:
        print(f"{0:>+9.1%}{'':>18}  {chosen}", flush=True)
        return Judged(tried, 0.0, (0.0, 0.0))
    assert whole.conversion is not None
    every = plan.settings([copy for copy in whole.conversion.copies if not copy.skipped])
    settings = {Answer.of(whole, trial): setting_of(trial, every) for trial in whole.trials}
    found = _paired(plan, (settings[chosen], settings[best]), options.pairs)
    low, high = (1 / end - 1 for end in reversed(found.speed_interval))
    behind = 1 / found.speed - 1
    print(f"{behind:>+9.1%}{f'{low:+.1%} to {high:+.1%}':>18}  {chosen}; {best}", flush=True)
    return Judged(tried, behind, (low, high))


def _swept(
    case: Case, url: str, folder: Path, step_s: float, seconds: float, exhaustive: bool
) -> tuple[SweepPlan, SweepResult]:
    conversion = ConversionSpec(case.formats, ("local",), 10**9, shard_bytes=case.shard_bytes)
    spec = SweepSpec(
        urls=tuple(each_reader(url, case.readers)), workers=WORKERS, prefetch=PREFETCH,
        batch_sizes=(case.batch_size,), step_s=step_s, columns=case.columns,
        transform=case.transform, trial_s=seconds, warmup_s=seconds / 3, cache="warm",
        conversion=conversion, exhaustive=exhaustive,
    )  # fmt: skip
    plan = plan_sweep(spec, folder)
    return plan, run_sweep(plan, SweepListener(), keep=exhaustive).result


def _best(sweep: SweepResult) -> int:
    """Return the trial of the cheapest setting within 3 % of the fastest, over all data sets."""
    control = sweep.conversion.control if sweep.conversion else None
    return best_trial(sweep.trials, [each for each in range(len(sweep.trials)) if each != control])


def _paired(plan: SweepPlan, settings: tuple[TrialSetting, TrialSetting], most: int) -> PairedRuns:
    brief = paired_spec(plan.spec)

    def once(setting: TrialSetting, nth: int, of: int) -> float:
        profile, *_ = run_trial(brief, setting, lone_requests=False)
        return profile.throughput.samples_per_s

    def exact(found: PairedRuns) -> bool:
        low, high = found.speed_interval
        return high - low <= 2 * _EXACT

    return run_pairs(once, (0, 1), settings, most, exact)


def print_summary(judged: Sequence[Judged]) -> None:
    behind = np.array([each.behind for each in judged])
    tried = np.array([each.tried for each in judged])
    few = tried <= _FEW
    near, beyond = behind <= _NEAR, [each.interval[0] > _NEAR for each in judged]
    bar = "met" if (near & few).all() else "MISSED"
    print(
        f"{len(judged)} sweeps: {percent(float(np.mean(near)))} within {percent(_NEAR)} of the "
        f"exhaustive answer, {percent(float(np.mean(near & few)))} in at most a quarter of its "
        f"trials [bar all: {bar}]; worst {behind.max():+.1%}, {sum(beyond)} further behind beyond "
        f"noise; tried {percent(float(tried.mean()))} of the grid, at most "
        f"{percent(float(tried.max()))}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.what_if", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="of the six data sets")
    parser.add_argument("--seconds", type=float, default=0.8, help="of a trial")
    parser.add_argument("--pairs", type=int, default=16, help="most that compare two answers")
    parser.add_argument("--mb", type=int, default=24, help="size of a data set in RAM")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is random")
    options = parser.parse_args()
    chance, judged = Random(options.seed), []
    print(f"{'data set':<24}{'step':>7}{'grid':>6}{'tried':>7}{'behind':>9}{'95 %':>18}  answers")
    for _ in range(options.rounds):
        for case in CASES:
            with tempfile.TemporaryDirectory(prefix="pipeprof-bench-", dir="/var/tmp") as folder:
                judged.append(judge(case, Path(folder), chance.choice(STEPS_S), options))
        options.seed += 1
    print_summary(judged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
