"""`pipeprof.tune` and tf.data's AUTOTUNE on the same work, each against its own best.

    python -m benchmarks.tune_peers [--seconds S] [--steady S] [--rounds N]

Two works, from local files in memory: photographs (decode, resize, batches of 16) and CSV files of
40 float columns (a file is a batch). The training step is a sleep. Each side trains for
``--seconds`` from nothing: `pipeprof.tune` from a loader without workers, and tf.data with
AUTOTUNE. *Best* is the fastest of fixed settings of that side, for ``--steady`` seconds each: 0 to
4 workers, and 1 to 4 parallel calls. The ratio is of the whole run, search included. Rates of the
two sides are not comparable, since their decoders differ.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import pipeprof
from benchmarks.random_loader_runs import tell
from benchmarks.readers_peers import python_of

SIDE, BATCH, COLUMNS, ROWS = 224, 16, 40, 4000
STEP_S = {"jpeg": 0.030, "csv": 0.004}
WORKERS, PARALLEL = (0, 1, 2, 3, 4), (1, 2, 3, 4)


class Photos(Dataset[torch.Tensor]):
    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.iterdir())

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(self.files[index % len(self.files)]) as photo:
            return torch.from_numpy(np.array(photo.resize((SIDE, SIDE))))


class Tables(Photos):
    def __getitem__(self, index: int) -> torch.Tensor:
        read = pa.csv.ReadOptions(use_threads=False)
        table = pa.csv.read_csv(self.files[index % len(self.files)], read_options=read)
        return torch.from_numpy(np.stack([each.to_numpy() for each in table.columns], axis=1))


def write(work: str, folder: Path) -> None:
    random = np.random.default_rng(0)
    for number in range(64):
        if work == "jpeg":
            small = random.integers(0, 255, (24, 32, 3), dtype=np.uint8)
            Image.fromarray(small).resize((640, 480)).save(folder / f"{number}.jpg", quality=85)
        else:
            values = random.random((ROWS, COLUMNS)).astype(np.float32)
            names = ",".join(f"x{each}" for each in range(COLUMNS))
            np.savetxt(folder / f"{number}.csv", values, "%.6f", ",", header=names, comments="")


def loader_of(work: str, folder: Path, workers: int) -> DataLoader[Any]:
    if work == "jpeg":
        return DataLoader(Photos(folder), batch_size=BATCH, num_workers=workers)
    return DataLoader(Tables(folder), batch_size=None, num_workers=workers)


def train(loader: Any, step_s: float, seconds: float) -> float:
    """Return the batches/s from the start."""
    start = time.perf_counter()
    for count, _ in enumerate(loader, start=1):
        time.sleep(step_s)
        if (spent_s := time.perf_counter() - start) > seconds:
            return count / spent_s
    raise AssertionError("the data set ended")


def tf_data(work: str, folder: Path, parallel: str, seconds: float) -> float:
    script = str(Path(__file__).with_name("tune_tfdata.py"))
    command = [python_of("tf.data"), script, work, str(folder), parallel]
    command += [str(STEP_S[work]), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def sides(
    work: str, folder: Path, seconds: float, steady: float
) -> Iterator[tuple[str, str, Callable[[], float]]]:
    """Yield side, setting, and a run with that setting; *auto* tunes itself."""
    step_s = STEP_S[work]

    def tuned() -> float:
        return train(pipeprof.tune(loader_of(work, folder, 0)), step_s, seconds)

    yield "pipeprof.tune", "auto", tuned
    for workers in WORKERS:
        yield (
            "pipeprof.tune", f"num_workers={workers}",
            lambda workers=workers: train(loader_of(work, folder, workers), step_s, steady),
        )  # fmt: skip
    yield "tf.data", "auto", lambda: tf_data(work, folder, "auto", seconds)
    for parallel in PARALLEL:
        yield (
            "tf.data", f"num_parallel_calls={parallel}",
            lambda parallel=parallel: tf_data(work, folder, f"{parallel}", steady),
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--steady", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for work in STEP_S:
        rates: dict[tuple[str, str], list[float]] = {}
        with tempfile.TemporaryDirectory() as folder:
            write(work, Path(folder))
            for number in range(options.rounds):
                arms = [*sides(work, Path(folder), options.seconds, options.steady)]
                for side, setting, run in arms if number % 2 else arms[::-1]:
                    tell(f"{work}: {side}, {setting}")
                    rates.setdefault((side, setting), []).append(run())
        for side, own in itertools.groupby(sorted(rates), key=lambda each: each[0]):
            settings = {setting: rates[side, setting] for _, setting in own}
            auto = settings.pop("auto")
            best = max(settings, key=lambda each: median(settings[each]))
            ratios = [one / other for one, other in zip(auto, settings[best], strict=True)]
            print(
                f"{work}, {side}: {median(ratios):.2f} of its best, {best}, by round "
                f"{', '.join(f'{each:.2f}' for each in ratios)}; it gives "
                f"{median(settings[best]):.1f} batches/s, a step of "
                f"{1e3 * STEP_S[work]:.0f} ms at most {1 / STEP_S[work]:.1f}"
            )


if __name__ == "__main__":
    main()
