"""Compares our reads of local files with plain reads, and measures the gain of read-ahead.

    python -m benchmarks.local_reads [folder] [rounds]

Blocks of 8 MiB of one file are read in random order, from memory and after eviction. Each round
times all methods in a new random order. A ratio is of two methods in the same round, and `os.pread`
against itself is the control. Then data sets are decoded with and without read-ahead, from memory
and (as root) from a disk throttled to a known rate. At best, the longer of reading and decoding
remains of their sum.
"""

from __future__ import annotations

import mmap
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof import formats
from pipeprof.model import ReadOptions
from pipeprof.storage.local import LocalStore
from pipeprof.storage.page_cache import evict, warm
from tests.lab.disk import slow_disk

BLOCK = 8 * 2**20
BLOCKS = 24
MB = 1_000_000
Read = Callable[[int], object]
"""Reads the block at an offset."""


def plain(path: Path) -> Read:
    def read(offset: int) -> object:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(BLOCK)

    return read


def pread(path: Path) -> Read:
    descriptor = os.open(path, os.O_RDONLY)
    return lambda offset: os.pread(descriptor, BLOCK, offset)


def mapped(path: Path) -> Read:
    """Map the file, touch every page of a block, and unmap it: a mapped page cannot be evicted."""

    def read(offset: int) -> object:
        whole = np.memmap(path, np.uint8, mode="r")
        return whole[offset : offset + BLOCK : mmap.PAGESIZE].sum()

    return read


def ours(path: Path, **options: int) -> Read:
    store = LocalStore(ReadOptions(**options))
    (item,) = store.find(str(path))
    return lambda offset: store.read(item, [(offset, BLOCK)])


def ways(path: Path) -> dict[str, Read]:
    found = {
        "os.pread": pread(path),
        "os.pread, control": pread(path),
        "open().read()": plain(path),
        "mmap, touched": mapped(path),
    }
    for depth in (1, 2, 4, 8):
        found[f"ours, depth {depth}"] = ours(path, queue_depth=depth)
    for kib in (256, 1024, 2048):
        found[f"ours, depth 4 of {kib} KiB"] = ours(path, request_bytes=kib * 1024)
    found["ours, depth 4, direct"] = ours(path, direct=1)
    return found


def compare(path: Path, cold: bool, rounds: int) -> None:
    offsets = [number * BLOCK for number in range(BLOCKS)]
    arms = ways(path)
    rates: dict[str, list[float]] = {name: [] for name in arms}
    cpu: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        random.shuffle(offsets)
        for name in random.sample(list(arms), len(arms)):
            (evict if cold else warm)([str(path)])
            start, cpu_s = perf_counter(), process_time()
            for offset in offsets:
                arms[name](offset)
            rates[name].append(BLOCKS * BLOCK / (perf_counter() - start) / 1e9)
            cpu[name].append((process_time() - cpu_s) / (BLOCKS * BLOCK / 1e9))
    state = "evicted before" if cold else "in memory"
    print(f"\n8 MiB blocks in random order, {state}: median (least-most)")
    print(f"  {'':26}{'GB/s':24}{'times os.pread':26}CPU seconds a GB")
    for name, values in rates.items():
        times = [one / other for one, other in zip(values, rates["os.pread"], strict=True)]
        print(f"  {name:26}{spread(values):24}{spread(times):26}{spread(cpu[name])}")


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def decoded(url: str, options: ReadOptions, transform_s: float, cold: bool) -> tuple[float, ...]:
    """Return seconds and CPU seconds for all batches, and the share of the time in `read`."""
    dataset = pipeprof.open_dataset(
        url, batch_size=20, read=options, transform=partial(slowly, transform_s)
    )
    (evict if cold else warm)(sorted(map(str, Path(url).iterdir())))
    loader = pipeprof.wrap(DataLoader(dataset, batch_size=None))
    start, cpu_s = perf_counter(), process_time()
    for _ in loader:
        pass
    wall_s, cpu_s = perf_counter() - start, process_time() - cpu_s
    waited_s = float(np.nansum(np.array(loader.recording().batches.read_s, float)))
    return wall_s, cpu_s, waited_s / wall_s


def slowly(seconds: float, batch: Any) -> Any:
    if seconds:
        sleep(seconds)
    return batch


def ahead_or_not(
    url: str, what: str, transform_s: float, cold: bool, rounds: int, direct: bool = False
) -> None:
    arms = {"without": False, "without, control": False, "ahead": True}
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name in random.sample(list(arms), len(arms)):
            options = ReadOptions(read_ahead=arms[name], direct=direct)
            found[name].append(decoded(url, options, transform_s, cold))
    print(f"\n{what}: median (least-most)")
    print(f"  {'':26}{'seconds':24}{'times as fast':26}{'CPU seconds':24}share that is `read`")
    plain_s = [wall_s for wall_s, _, _ in found["without"]]
    for name, values in found.items():
        wall, cpu, read = (list(column) for column in zip(*values, strict=True))
        times = [other / one for one, other in zip(wall, plain_s, strict=True)]
        print(f"  {name:26}{spread(wall):24}{spread(times):26}{spread(cpu):24}{spread(read)}")


def write(folder: Path, name: str, table: pa.RecordBatch) -> str:
    """Write three files, and return their folder."""
    (folder / name).mkdir()
    for number in range(3):
        encoder = formats.get(name).encoder(table.schema)
        data = encoder.write(table) + encoder.finish()
        (folder / name / f"{number}.{name}").write_bytes(data)
    return str(folder / name)


def main(parent: str | None = None, rounds: str = "9") -> None:
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        path = Path(folder) / "blocks"
        path.write_bytes(np.random.default_rng(0).bytes(BLOCKS * BLOCK))
        for cold in (False, True):
            compare(path, cold, int(rounds))
        rng = np.random.default_rng(1)
        images = pa.record_batch({"image": pa.array([rng.bytes(100_000) for _ in range(100)])})
        table = pa.record_batch({f"x{n}": rng.normal(size=20_000) for n in range(10)})
        blobs, rows = write(Path(folder), "tfrecord", images), write(Path(folder), "csv", table)
        ahead_or_not(blobs, "TFRecord of 100 KB blobs, in memory", 0, False, int(rounds))
        ahead_or_not(rows, "CSV of 10 columns, in memory", 0, False, int(rounds))
        # after 0.1 s without reads, a throttle allows a burst, so blocks must take longer than that
        what = "the same blobs from a disk of 10 MB/s, and 200 ms of transform for 2 MB"
        try:
            with slow_disk(Path(folder), bytes_per_s=10 * MB):
                ahead_or_not(blobs, f"{what}, past the page cache", 0.2, True, 3, direct=True)
                ahead_or_not(blobs, f"{what}, where the kernel reads ahead too", 0.2, True, 3)
        except pytest.skip.Exception as why:
            print(f"\n{what}: NOT MEASURED, {why}")


if __name__ == "__main__":
    main(*sys.argv[1:])
