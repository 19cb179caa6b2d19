"""Measures how often `pipeprof compare` reports a difference: between runs of one setting, and
between these and runs that are slower by a known factor.

``python -m benchmarks.alike`` takes four minutes. Each run has a process of its own, and plain and
slower runs alternate.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import combinations, product
from pathlib import Path
from statistics import median
from time import sleep, thread_time

import torch
from torch.utils.data import DataLoader, Dataset

from pipeprof.analyze.compare.differences import waiting_share
from pipeprof.analyze.compare.runs import two_runs
from pipeprof.loaders.instrument.wrap import wrap
from pipeprof.model import Profile, TwoRuns
from pipeprof.store import load
from pipeprof.units import percent

RUNS = 8
SLOWER = 1.25
"""Factor on the time that a worker takes for a batch, in the slower runs."""
_BLOCK = bytes(65536)


def nap(seconds: float, index: int) -> torch.Tensor:
    """Sleep. The duration varies with ``index``, or several workers would run in lockstep."""
    sleep(seconds * (0.8 + 0.4 * (index * 7 % 11) / 10))
    return torch.zeros(4)


def burn(seconds: float, index: int) -> torch.Tensor:
    """Use CPU time while the interpreter lock is released, as decoders do."""
    end = thread_time() + seconds
    while thread_time() < end:
        sha256(_BLOCK)
    return torch.zeros(4)


class Samples(Dataset[torch.Tensor]):
    def __init__(self, make: Callable[[int], torch.Tensor], count: int) -> None:
        self._make, self._count = make, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> torch.Tensor:
        return self._make(index)


@dataclass(frozen=True)
class Pipeline:
    name: str
    make: Callable[[float, int], torch.Tensor]
    seconds: float
    """Time that a worker takes for a batch."""
    workers: int
    step_s: float
    batches: int

    def run(self, slower: float, out: str) -> None:
        make = partial(self.make, self.seconds * slower)
        loader = wrap(DataLoader(Samples(make, self.batches), num_workers=self.workers), whole=True)
        for _ in loader:
            sleep(self.step_s)
        loader.profile().save(out)


PIPELINES = (
    Pipeline("waiting, starved", nap, 0.030, 1, 0.005, 100),
    Pipeline("computing, starved", burn, 0.030, 2, 0.005, 140),
    Pipeline("waiting, fed", nap, 0.020, 2, 0.020, 110),
    Pipeline("handed over", nap, 0.004, 2, 0.001, 500),
)


def run(pipeline: Pipeline, slower: float, folder: Path) -> Profile:
    out = folder / "run.json"
    process = multiprocessing.get_context("fork").Process(
        target=pipeline.run, args=(slower, str(out))
    )
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("a run failed")
    found = load(out)
    assert isinstance(found, Profile)
    return found


def compare(pairs: Iterable[tuple[Profile, Profile]], drift: float | None = None) -> list[TwoRuns]:
    return [two_runs(one, other, ("one", "other"), drift) for one, other in pairs]


def told(pipeline: Pipeline, folder: Path) -> None:
    runs = [(run(pipeline, 1.0, folder), run(pipeline, SLOWER, folder)) for _ in range(RUNS)]
    same, slow = zip(*runs, strict=True)
    print(
        f"\n{pipeline.name}: {pipeline.workers} workers, {RUNS} runs of {pipeline.batches} batches"
    )
    busy = sorted(map(waiting_share, same))
    print(f"  of the time to make a batch, workers waited for a core {percent(busy[0])} in one run "
          f"to {percent(busy[-1])} in another")  # fmt: skip
    alike = list(combinations(same, 2))
    _print("the same setting", compare(alike))
    _print("  by their batches alone (control)", compare(alike, drift=0.0))
    apart = compare(product(same, slow))
    _print(f"a batch takes a worker {SLOWER:.2f} times as long", apart)
    added = pipeline.seconds * (SLOWER - 1)
    fetch = [pair.stages["fetch"] for pair in apart]
    held = sum(each.interval is not None and each.interval[0] <= added <= each.interval[1]
               for each in fetch)  # fmt: skip
    shown = sum(each.shown == "more" for each in fetch)
    print(f"  fetch told to take longer in {shown} of {len(fetch)}; its interval holds the "
          f"{added * 1e3:.1f} ms in {held}")  # fmt: skip


def _print(what: str, pairs: Sequence[TwoRuns]) -> None:
    ratios = sorted(pair.speed.ratio or 0.0 for pair in pairs)
    told = sum(pair.speed.shown != "none" for pair in pairs)
    stages = sum(any(stage.shown in ("more", "less") for stage in pair.stages.values())
                 for pair in pairs)  # fmt: skip
    spans = [pair.speed.interval for pair in pairs if pair.speed.interval]
    half = median((high - low) / 2 for low, high in spans)
    print(
        f"  {what}: {len(pairs)} pairs, {ratios[0]:.2f}–{ratios[-1]:.2f}×, interval ± {half:.2f}: "
        f"throughput differs in {told}, a stage in {stages}"
    )


if __name__ == "__main__":
    chosen = [each for each in PIPELINES if not sys.argv[1:] or sys.argv[1] in each.name]
    with tempfile.TemporaryDirectory() as folder:
        for each in chosen:
            told(each, Path(folder))
