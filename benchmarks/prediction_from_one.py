"""Measures the errors of advice from a single profile: what it predicts for the workers that it
proposes is compared with real runs with that many workers.

    python -m benchmarks.prediction_from_one [--pipelines A,B] [--from 1,2] [--steps-ms 2,10]
                                             [--seeds 1,2,3] [--seconds S] [--repeats N]

Each profile is of one run. The runs with the proposed workers use other samples, and follow in
random order after all profiles. An error is that of throughput. A prediction is *open* where the
profile gives a range, and the run that would decide it. The noise of a cell is half of the range of
its own runs' rates.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from benchmarks.prediction_runs import Job, measure, run
from pipeprof.model import Recommendation
from pipeprof.units import percent

_PIPELINES = "sleeping,computing,counting,mixed,one in twenty"


@dataclass
class Told:
    """The proposal of one profile, and the real runs that it is compared with."""

    job: Job
    samples: float
    """Samples per batch."""
    advice: Recommendation
    """The recommendation of more workers."""
    rates: list[float]
    """Samples/s of real runs with the proposed workers."""
    starved: list[float]

    @property
    def proposed(self) -> Job:
        """The job with the proposed workers, on other samples."""
        return replace(self.job, num_workers=int(self.advice.proposed), seed=-1 - self.job.seed)

    @property
    def error(self) -> float | None:
        predicted = self.advice.predicted_samples_per_s
        return predicted / float(np.median(self.rates)) - 1 if predicted is not None else None

    @property
    def held(self) -> float | None:
        """Share of the runs inside the interval, which is for a single run."""
        if self.advice.interval is None:
            return None
        low, high = self.advice.interval
        return float(np.mean([low <= rate <= high for rate in self.rates]))

    @property
    def noise(self) -> float:
        return (max(self.rates) - min(self.rates)) / 2 / float(np.median(self.rates))


def profiled(job: Job, seconds: float) -> tuple[Told | None, str]:
    """Return what a profile proposes, if it is more workers; else ``None`` and what it reports."""
    profile = run(job, seconds).profile()
    rate = profile.throughput
    for advice in profile.recommendations:
        if advice.setting == "num_workers" and int(advice.proposed) > job.num_workers:
            return Told(job, rate.samples_per_s / rate.batches_per_s, advice, [], []), ""
    first = profile.recommendations[0] if profile.recommendations else None
    return None, f"{first.setting}: {first.proposed}" if first else profile.diagnosis.verdict


def measured(every: Sequence[Told], repeats: int, seconds: float) -> None:
    chance = random.Random(0)
    for repeat in range(repeats):
        for told in chance.sample(every, len(every)):
            found = measure(replace(told.proposed, repeat=repeat), seconds)
            told.rates.append(found.batches_per_s * told.samples)
            told.starved.append(float(found.columns.wait_s.sum() / found.columns.cycle_s.sum()))


def print_row(told: Told) -> None:
    advice, job = told.advice, told.job
    low, high = advice.interval or (float("nan"), float("nan"))
    error = f"{told.error:+.1%}" if told.error is not None else "open" if advice.settle else "none"
    starved = f"{advice.predicted_starved:.1%}" if advice.predicted_starved is not None else ""
    print(
        f"{job.pipeline:<15}{job.step_s * 1e3:>6.0f} ms{job.num_workers:>4} →{advice.proposed:>3}"
        f"{advice.predicted_samples_per_s or float('nan'):>10.0f}{low:>8.0f} –{high:>6.0f}"
        f"{np.median(told.rates):>10.0f}{error:>8}{told.noise:>8.1%}"
        f"{'' if told.held is None else percent(told.held):>8}"
        f"{starved:>9}{np.median(told.starved):>8.1%}",
        flush=True,
    )


def print_summary(every: Sequence[Told]) -> None:
    errors = np.abs([told.error for told in every if told.error is not None])
    held = [told.held for told in every if told.held is not None]
    starved = [
        abs(told.advice.predicted_starved - float(np.median(told.starved)))
        for told in every if told.advice.predicted_starved is not None
    ]  # fmt: skip
    widths = [
        (told.advice.interval[1] - told.advice.interval[0]) / 2 / float(np.median(told.rates))
        for told in every if told.advice.interval is not None
    ]  # fmt: skip
    if not len(errors):
        print("no prediction to judge")
        return
    apart = f"{np.median(starved):.1%} apart, worst {max(starved):.1%}"
    print(
        f"{len(every)} proposals, {len(errors)} with a number: error median "
        f"{np.median(errors):.1%}, 90 % within {np.percentile(errors, 90):.1%}, worst "
        f"{errors.max():.1%}; starved {apart}; intervals hold {np.mean(held):.0%} of the runs, "
        f"± {np.median(widths):.1%}; noise {np.median([told.noise for told in every]):.1%}"
    )


def asked_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prediction_from_one", description=__doc__
    )
    parser.add_argument("--pipelines", default=_PIPELINES)
    parser.add_argument("--from", default="1,2", dest="workers", help="workers of the profiles")
    parser.add_argument("--steps-ms", default="2,10")
    parser.add_argument("--seeds", default="1,2", help="of what is random in the pipelines")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    parser.add_argument("--repeats", type=int, default=3, help="of each run that is proposed")
    return parser.parse_args()


def main() -> int:
    options = asked_of()
    warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
    workers, seeds = (map(int, each.split(",")) for each in (options.workers, options.seeds))
    steps_s = [float(each) / 1e3 for each in options.steps_ms.split(",")]
    every = []
    for name, step_s, count, seed in product(
        options.pipelines.split(","), steps_s, list(workers), list(seeds)
    ):
        job = Job(name, count, 2, step_s, seed)
        told, instead = profiled(job, options.seconds)
        if told is not None:
            every.append(told)
        else:
            print(f"{name}, {step_s * 1e3:.0f} ms, {count} workers: not more of them; {instead}")
    measured(every, options.repeats, options.seconds)
    print(
        f"{'pipeline':<15}{'step':>9}{'workers':>9}{'predicted':>10}{'90 %':>12}"
        f"{'measured':>14}{'error':>8}{'noise':>8}{'held':>8}{'starved':>9}{'really':>8}"
    )
    for told in every:
        print_row(told)
    print_summary(every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
