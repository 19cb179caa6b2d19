"""How wrong predictions are: calibrated on short runs with 0, 1 and 2 workers, held against real
runs in other settings.

    python -m benchmarks.prediction [--pipelines A,B] [--seconds S] [--quick] [--seed N]

An error is that of throughput, over cells in which the accelerator waits 5 % of the time or more.
The noise of a cell is what its own two halves differ by.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from itertools import product
from time import perf_counter

import numpy as np
from torch.utils.data import DataLoader

import pipeprof
from benchmarks.prediction_pipelines import BATCH_SIZE, PIPELINES, Known
from pipeprof.analyze.calibrate import Calibration, Measured, calibrate
from pipeprof.analyze.columns import Columns
from pipeprof.analyze.predict import Prediction, predict
from pipeprof.analyze.simulate import Setting
from pipeprof.measure.accelerator import EmulatedAccelerator

WORKERS, PREFETCH, STEPS_S = (0, 1, 2, 4, 8), (1, 2, 4), (0.0, 0.005, 0.020)
QUICK_WORKERS, QUICK_PREFETCH, QUICK_STEPS_S = (0, 1, 2, 4), (2,), (0.0, 0.010)
_STALLED = 0.05


@dataclass(frozen=True)
class Cell:
    prediction: Prediction
    step_s: float
    batches_per_s: float
    starved_fraction: float
    noise: float

    @property
    def error(self) -> float:
        return self.prediction.batches_per_s / self.batches_per_s - 1

    @property
    def held(self) -> bool:
        low, high = self.prediction.interval
        return low <= self.batches_per_s <= high

    @property
    def half_width(self) -> float:
        low, high = self.prediction.interval
        return (high - low) / 2 / self.prediction.batches_per_s


def measure(name: str, setting: Setting, step_s: float, seconds: float, seed: int) -> Measured:
    """A real loader, profiled."""
    loader = DataLoader(
        Known(PIPELINES[name], seed),
        batch_size=BATCH_SIZE,
        num_workers=setting.num_workers,
        prefetch_factor=setting.prefetch_factor if setting.num_workers else None,
    )
    profiled = pipeprof.wrap(loader, name)
    accelerator = EmulatedAccelerator(step_s)
    warmup = 2 * setting.num_workers * setting.prefetch_factor
    start = perf_counter()
    for count, batch in enumerate(profiled, start=1):
        accelerator.step(batch)
        if count == warmup:
            start = perf_counter()
        if count >= warmup + 30 and perf_counter() - start > seconds:
            break
    columns = Columns.of(profiled.recording().batches)
    return Measured(setting, columns.take(np.arange(len(columns)) >= warmup))


def cell(found: Calibration, run: Measured, step_s: float) -> Cell:
    columns = run.columns
    halves = [len(part) / float(part.sum()) for part in np.array_split(columns.cycle_s, 2)]
    return Cell(
        predict(found, run.setting, columns.step_s),
        step_s,
        run.batches_per_s,
        float(columns.wait_s.sum() / columns.cycle_s.sum()),
        abs(halves[0] / halves[1] - 1) / 2,
    )


def cells_of(name: str, options: argparse.Namespace) -> list[Cell]:
    calibration = [
        measure(name, Setting(workers), 0.0, options.seconds, options.seed) for workers in (0, 1, 2)
    ]
    found = calibrate(calibration, len(os.sched_getaffinity(0)))
    grid = (QUICK_WORKERS, QUICK_PREFETCH, QUICK_STEPS_S) if options.quick else (
        WORKERS, PREFETCH, STEPS_S,
    )  # fmt: skip
    cells = []
    for workers, prefetch, step_s in product(*grid):
        if workers == 0 and prefetch != grid[1][0]:
            continue
        run = measure(name, Setting(workers, prefetch), step_s, options.seconds, options.seed + 1)
        cells.append(cell(found, run, step_s))
        if options.verbose:
            print_cell(cells[-1])
    return cells


def print_cell(one: Cell) -> None:
    setting, told = one.prediction.setting, one.prediction
    low, high = told.interval
    print(
        f"    W={setting.num_workers} P={setting.prefetch_factor} step {one.step_s * 1e3:4.0f} ms: "
        f"predicted {told.batches_per_s:7.1f} ({low:.1f}–{high:.1f}), measured "
        f"{one.batches_per_s:7.1f}, error {one.error:+6.1%}, noise {one.noise:5.1%}; starved "
        f"{told.starved_fraction:.1%} and {one.starved_fraction:.1%}"
        f"{'; ' + told.settle if told.settle else ''}",
        flush=True,
    )


def print_row(name: str, cells: list[Cell]) -> None:
    stalled = [one for one in cells if one.starved_fraction >= _STALLED]
    given = [one for one in stalled if not one.prediction.settle]
    if not given:
        print(f"{name:<15}{len(stalled):>4} cells, none with a number")
        return
    errors = np.abs([one.error for one in given])
    starved = [abs(one.prediction.starved_fraction - one.starved_fraction) for one in given]
    print(
        f"{name:<15}{len(stalled):>4}{1 - len(given) / len(stalled):>10.0%}"
        f"{np.median(errors):>9.1%}{np.percentile(errors, 90):>8.1%}{errors.max():>8.1%}"
        f"{np.median(starved):>9.1%}{max(starved):>8.1%}"
        f"{np.mean([one.held for one in given]):>8.0%}"
        f"{np.median([one.half_width for one in given]):>8.1%}"
        f"{np.median([one.noise for one in given]):>8.1%}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description=__doc__)
    parser.add_argument("--pipelines", default=",".join(PIPELINES))
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a smaller grid")
    parser.add_argument("--verbose", action="store_true", help="each cell")
    options = parser.parse_args()
    print(
        "throughput: error over stalled cells; starved: points apart; held: intervals that hold\n"
        f"{'pipeline':<15}{'stalled':>4}{'declined':>7}{'median':>9}{'p90':>8}{'worst':>8}"
        f"{'starved':>9}{'worst':>8}{'held':>8}{'±':>8}{'noise':>8}"
    )
    every: list[Cell] = []
    for name in options.pipelines.split(","):
        cells = cells_of(name, options)
        print_row(name, cells)
        every += cells
    print_row("all", every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
