"""Compares our readers of CSV, Parquet and TFRecord into tensors with those of others, on one core.

    python -m benchmarks.readers [--rounds N] [--only FORMAT SHAPE] [--no-bars]

Each reader has a process of its own, and reads the same file from the page cache. All are pinned to
the same core, except for readers whose number of threads is given. Each round runs all readers in
random order. All end in batches of 4,096 rows (64 images). Ours are exact batches of tensors,
through `pipeprof.open_dataset` with its read-ahead and counters. The others' arrays are cut into as
many rows, which copies nothing. First each reads once, and all must return the same columns of the
same types with the same sums.

The bars: 0.95 times as fast as the fastest plain use of pyarrow, which decodes CSV and Parquet for
us too. For 40 scalar columns of TFRecord, 1.5 times as fast as tf.data's batched parser, and 20
times as fast as the ``tfrecord`` package. Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import pipeprof
from benchmarks.overhead_stats import Estimate, estimate
from benchmarks.readers_peers import AGAIN, OURS, PEERS, Process, Reader
from benchmarks.readers_shapes import SHAPES, Shape, write

SCALARS = ("floats", "clicks")
"""Shapes of 40 scalar columns."""
Passes = dict[Reader, list[dict[str, Any]]]


def compare(shape: Shape, format_name: str, folder: Path, rounds: int) -> bool:
    """Print a table, and return whether no bar is missed."""
    path = write(shape, format_name, folder)
    size = path.stat().st_size
    print(f"\n{format_name}, {shape.name}: {shape.what}; {size / 1e6:.1f} MB")
    print(
        f"  {'':<22}{'rows/s':>11}{'MB/s':>8}{'CPU':>10}{'CPU/wall':>10}"
        "   ours is so many times as fast"
    )
    job = {"path": str(path), "types": shape.types(), "batch": shape.batch}
    with ExitStack() as stack:
        processes = open_all((OURS, AGAIN, *PEERS[format_name]), job, stack)
        passes = measure(processes, job, rounds)
    path.unlink()
    for reader in sorted(passes, key=lambda reader: cpu_of_row(passes, reader)):
        print_row(reader, passes, size)
    verdicts = [judge(passes, library, bar) for library, bar in bars(format_name, shape)]
    return "MISSED" not in verdicts


def bars(format_name: str, shape: Shape) -> list[tuple[str, float]]:
    """Return each library, and how many times as fast as its fastest reader ours must be."""
    if format_name != "tfrecord":
        return [("pyarrow", 0.95)]
    return [("tf.data", 1.5), ("tfrecord", 20.0)] if shape.name in SCALARS else []


def judge(passes: Passes, library: str, bar: float) -> str:
    """Print and return whether the bar is met."""
    one_core = [each for each in passes if each.threads == 1 and each.name.startswith(library)]
    if not one_core:
        return "not judged"
    fastest = min(one_core, key=lambda reader: cpu_of_row(passes, reader))
    gain = faster(passes, fastest)
    verdict = "met" if gain.low >= bar else "MISSED" if gain.high < bar else "not judged"
    print(f"  at least {bar:g} times {fastest}: {verdict}", flush=True)
    return verdict


def open_all(
    readers: Sequence[Reader], job: dict[str, Any], stack: ExitStack
) -> dict[Reader, Process]:
    """Start the readers that can be installed, and check that they return what ours returns."""
    processes: dict[Reader, Process] = {}
    ours: dict[str, Any] | None = None
    for reader in readers:
        try:
            process = Process(reader)
            stack.callback(process.close)
            given = process.ask(**job, describe=True)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"  {reader!s:<22}NOT MEASURED ({error})")
            continue
        if reader == OURS or ours is None:
            ours = given
        assert given["types"] == ours["types"], (reader, given["types"], ours["types"])
        if given["rows"] == ours["rows"]:
            sums = [list(each["sums"].values()) for each in (given, ours)]
            assert np.allclose(*sums, rtol=1e-6), f"{reader} reads other values"
        processes[reader] = process
    return processes


def measure(processes: dict[Reader, Process], job: dict[str, Any], rounds: int) -> Passes:
    passes: Passes = {reader: [] for reader in processes}
    order = random.Random(0)
    for _ in range(rounds):
        for reader in order.sample(list(processes), len(processes)):
            passes[reader].append(processes[reader].ask(**job, describe=False))
    return passes


def median(passes: Passes, reader: Reader, what: str) -> float:
    return float(np.median([one[what] for one in passes[reader]]))


def cpu_of_row(passes: Passes, reader: Reader) -> float:
    return median(passes, reader, "cpu_s") / passes[reader][0]["rows"]


def faster(passes: Passes, reader: Reader) -> Estimate:
    """Return how many times as fast ours is. A reader with one thread is compared by CPU time, in
    which other processes on the core do not count; others are compared by wall time."""
    what = "cpu_s" if reader.threads == 1 else "wall_s"
    pairs = zip(passes[reader], passes[OURS], strict=True)
    return estimate(
        np.array([[their[what] / their["rows"] / our[what] * our["rows"]] for their, our in pairs])
    )


def print_row(reader: Reader, passes: Passes, size: int) -> None:
    wall, cpu = median(passes, reader, "wall_s"), median(passes, reader, "cpu_s")
    name = str(reader) + (f", {reader.threads} threads" if reader.threads > 1 else "")
    said = ""
    if reader != OURS:
        gain = faster(passes, reader)
        enough = np.isfinite(gain.high)
        said = f"{gain.middle:.2f}" + (f" [{gain.low:.2f}, {gain.high:.2f}]" if enough else "")
    rows, all_rows = passes[reader][0]["rows"], passes[OURS][0]["rows"]
    part = size * rows / all_rows
    print(
        f"  {name:<22}{rows / wall:>11,.0f}{part / wall / 1e6:>8,.0f}{cpu * 1e3:>7,.1f} ms"
        f"{cpu / wall:>10.2f}   {said}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", default=[], metavar="FORMAT | SHAPE")
    parser.add_argument("--no-bars", action="store_true", help="judge, but exit with 0")
    options = parser.parse_args()
    print(
        f"pipeprof {pipeprof.__version__}, pyarrow {pa.__version__}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}, "
        f"{os.cpu_count()} cores; load average at the start {os.getloadavg()[0]:.1f}\n"
        f"Medians of {options.rounds} passes; in brackets 95 % intervals."
    )
    met = True
    with tempfile.TemporaryDirectory() as folder:
        for format_name in PEERS:
            for shape in SHAPES:
                asked = {format_name, shape.name} >= set(options.only)
                if asked and format_name in shape.formats:
                    met &= compare(shape, format_name, Path(folder), options.rounds)
    return int(not met and not options.no_bars)


if __name__ == "__main__":
    sys.exit(main())
