"""Runs ten million real batches with export, and watches memory and files.

    python -m benchmarks.soak [--batches N] [--workers N]

Epochs of a tenth each. Memory is what the process holds at the end of an epoch, beyond what it held
at the end of the first. Run with ``make bench-soak``; it takes some minutes.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.units import format_bytes, format_duration

EPOCHS = 10
MOST_GROWTH_BYTES, MOST_FILES_BYTES, MOST_S = 5_000_000, 33_000_000, 600
EXPORT_S = 0.5


class Numbers(Dataset[Any]):
    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        return index


def held_bytes() -> int:
    gc.collect()
    return int(psutil.Process(os.getpid()).memory_info().rss)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bare = DataLoader(
            Numbers(options.batches // EPOCHS), batch_size=None, num_workers=options.workers
        )
        loader = pipeprof.wrap(bare, export=f"jsonl:{folder}/soak.jsonl", export_every=EXPORT_S)
        start, held = perf_counter(), list[int]()
        for _ in range(EPOCHS):
            for _batch in loader:
                pass
            held.append(held_bytes())
        took_s = perf_counter() - start
        files = sum(each.stat().st_size for each in Path(folder).iterdir())
        lines = Path(folder, "soak.jsonl").read_bytes().count(b"\n")
    batches = loader.recording().epochs[-1].batches * EPOCHS
    grown = max(held) - held[0]
    print(f"{batches:,} batches of {options.workers} workers in {format_duration(took_s)}, "
          f"bar {MOST_S} s; {lines:,} exports in the last file")  # fmt: skip
    print(f"  memory after each tenth {', '.join(map(format_bytes, held))}")
    print(f"  it grew by {format_bytes(max(0, grown))}, bar {format_bytes(MOST_GROWTH_BYTES)}")
    print(f"  files  {format_bytes(files)}, bar {format_bytes(MOST_FILES_BYTES)}")
    return int(grown > MOST_GROWTH_BYTES or files > MOST_FILES_BYTES or took_s > MOST_S)


if __name__ == "__main__":
    sys.exit(main())
