"""How often `pipeprof compare` reports a difference between runs of one setting, and how often it
finds a real loss.

    python -m benchmarks.compare_noise [--runs N] [--seconds S] [--keep FOLDER] [NAME]
    python -m benchmarks.compare_noise --kept FOLDER

Loaders that compute vary as the machine does: each is run N times, every run in a process of its
own, and all pairs of them are compared. Loaders that sleep are steady: runs in which a batch takes
a worker longer alternate with plain ones, and each plain run is compared with each slower one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from random import Random
from statistics import median

import torch

from benchmarks.alike import Pipeline, compare, nap, run
from pipeprof.model import Profile, TwoRuns
from pipeprof.store import load
from pipeprof.units import percent

SLOWER = 1 / 0.9
"""Factor on the time that a worker takes for a batch: 10 % fewer samples/s."""
_JITTER = 0.2


def count(seconds: float, index: int) -> torch.Tensor:
    """Compute in Python. The work is equal in every run, so only the machine varies its time."""
    total = 0
    for number in range(round(seconds / 40e-9 * Random(index).lognormvariate(0, _JITTER))):
        total += number
    return torch.zeros(4)


def computing(seconds: float) -> tuple[Pipeline, ...]:
    """Return loaders that compute, and whose runs last about ``seconds``."""
    return (
        Pipeline("python, no workers", count, 0.010, 0, 0.0, round(seconds / 0.010)),
        Pipeline("python, 1 worker", count, 0.010, 1, 0.0, round(seconds / 0.010)),
        Pipeline("python, 2 workers", count, 0.010, 2, 0.0, round(seconds / 0.005)),
        Pipeline("python, 4 workers", count, 0.010, 4, 0.0, round(seconds / 0.005)),
        Pipeline("python, nearly fed", count, 0.010, 2, 0.005, round(seconds / 0.006)),
    )


def steady(seconds: float) -> tuple[Pipeline, ...]:
    return (
        Pipeline("sleeps, 1 worker", nap, 0.020, 1, 0.0, round(seconds / 0.020)),
        Pipeline("sleeps, 2 workers", nap, 0.020, 2, 0.005, round(seconds / 0.010)),
    )


def runs_of(pipeline: Pipeline, slower: float, number: int, options: argparse.Namespace) -> Profile:
    """Run the loader, or read the profile that was kept of that run."""
    name = f"{pipeline.name}-{'slower' if slower > 1 else 'plain'}-{number}.json".replace(" ", "_")
    if options.kept is not None:
        found = load(options.kept / name)
        assert isinstance(found, Profile)
        return found
    with tempfile.TemporaryDirectory() as folder:
        profile = run(pipeline, slower, Path(folder))
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        profile.save(options.keep / name)
    return profile


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare_noise", description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="part of the name of a loader")
    parser.add_argument("--runs", type=int, default=8, help="of each loader")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the profiles there")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="read them from there")
    options = parser.parse_args(arguments)
    # more workers than cores are intended here
    warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
    print(f"{'loader':<22}{'samples/s':>18}{'pairs':>7}{'different':>11}{'interval':>10}")
    called = pairs = 0
    for pipeline in computing(options.seconds):
        if options.name in pipeline.name:
            profiles = [runs_of(pipeline, 1.0, number, options) for number in range(options.runs)]
            found = compare(combinations(profiles, 2))
            called += _row(pipeline.name, profiles, found)
            pairs += len(found)
    if pairs:
        print(
            f"{called} of {pairs} pairs of equal runs called different, {percent(called / pairs)}"
        )
    for pipeline in steady(options.seconds):
        if options.name in pipeline.name:
            both = [(runs_of(pipeline, 1.0, number, options),
                     runs_of(pipeline, SLOWER, number, options))
                    for number in range(options.runs)]  # fmt: skip
            plain, slow = zip(*both, strict=True)
            _row(pipeline.name, plain, compare(combinations(plain, 2)))
            lost = compare(product(plain, slow))
            _row("  10 % slower", slow, lost)
            shown = sum(pair.speed.shown == "slower" for pair in lost)
            print(f"  real losses of 10 %: found {shown} of {len(lost)}")
    return 0


def _row(name: str, profiles: Sequence[Profile], pairs: Sequence[TwoRuns]) -> int:
    """Print how many of ``pairs`` were reported to differ, and return that number."""
    rates = sorted(profile.throughput.samples_per_s for profile in profiles)
    shown = sum(pair.speed.shown != "none" for pair in pairs)
    spans = [pair.speed.interval for pair in pairs if pair.speed.interval]
    half = median((high - low) / 2 for low, high in spans)
    span = f"{rates[0]:.1f}-{rates[-1]:.1f}"
    print(f"{name:<22}{span:>18}{len(pairs):>7}{shown:>11}{f'±{half:.0%}':>10}")
    return shown


if __name__ == "__main__":
    sys.exit(main())
