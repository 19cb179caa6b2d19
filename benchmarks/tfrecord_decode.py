"""How fast TFRecord rows of many scalars become columns: protobuf alone, and the scan.

    python benchmarks/tfrecord_decode.py [rounds]

The same records in memory, 13 float and 27 int columns. A round takes both ways twice, in turn, so
that a drift of the machine hits both alike; protobuf against itself is the control.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof.formats import example, example_block, example_encode
from pipeprof.formats.framing import Deframer, frame

ROWS = 8192
BATCH = 1024
Decode = Callable[[Sequence[bytes], pa.Schema, int], Any]


def table() -> pa.RecordBatch:
    """Ints as clicks have them: most are small, some take nine bytes, and -1 says none."""
    rng = np.random.default_rng(0)
    floats = {f"float{i}": rng.normal(size=ROWS).astype(np.float32) for i in range(13)}
    ints = {f"int{i}": rng.lognormal(6, 5, ROWS).astype(np.int64) for i in range(27)}
    for values in ints.values():
        values[rng.random(ROWS) < 0.02] = -1
    return pa.RecordBatch.from_pydict({**floats, **ints})


def shuffled(payload: bytes, order: random.Random) -> bytes:
    """With its features in another order: protobuf promises none."""
    features = example.Example.FromString(payload).features
    names = order.sample(sorted(features.feature), len(features.feature))
    one = type(features)
    entries = b"".join(
        one(feature={name: features.feature[name]}).SerializeToString() for name in names
    )
    return bytes([0x0A, len(entries) & 127 | 128, len(entries) >> 7]) + entries


def rows_per_s(decode: Decode, payloads: Sequence[bytes], schema: pa.Schema) -> float:
    start = perf_counter()
    for first in range(0, len(payloads), BATCH):
        decode(payloads[first : first + BATCH], schema, first)
    return len(payloads) / (perf_counter() - start)


def framed_per_s(decode: Decode, payloads: Sequence[bytes], schema: pa.Schema) -> float:
    """With the framing and its CRCs."""
    data = b"".join(map(frame, payloads))
    start = perf_counter()
    rows_per_s(decode, Deframer().feed(data), schema)
    return len(payloads) / (perf_counter() - start)


def spread(values: list[float], form: str) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:{form}} ({least:{form}}–{most:{form}})"


def compare(name: str, run: Callable[[Decode], float], rounds: int) -> None:
    """Print a line."""
    plain, scan, gains, control = [], [], [], []
    for _ in range(rounds):
        first, fast = run(example.decode), run(example_block.decode)
        again, faster = run(example.decode), run(example_block.decode)
        plain += [first, again]
        scan += [fast, faster]
        gains += [fast / first, faster / again]
        control.append(again / first)
    print(
        f"{name:<24}  {spread(plain, ',.0f'):>22}  {spread(scan, ',.0f'):>26}"
        f"  {spread(gains, '.1f'):>16}  {spread(control, '.2f'):>16}",
        flush=True,
    )


def main(rounds: int) -> None:
    batch, order = table(), random.Random(0)
    payloads = example_encode.encode(batch)
    mixed = [shuffled(payload, order) for payload in payloads]
    some = pa.schema([batch.schema.field(place) for place in (0, 12, 13, 39)])
    for records in (payloads, mixed):
        example_block.decode_scanned(records, batch.schema, 0)  # raises where it cannot scan
    size = statistics.mean(map(len, payloads))
    print(f"{ROWS:,} rows of 40 columns, {size:.0f} bytes each, in batches of {BATCH:,};")
    print(f"{rounds} rounds of protobuf, scan, protobuf, scan: median (least–most)")
    print(
        f"{'':<24}  {'protobuf, rows/s':>22}  {'scan, rows/s':>26}  {'scan / protobuf':>16}"
        f"  {'control':>16}"
    )
    compare("all columns", lambda way: rows_per_s(way, payloads, batch.schema), rounds)
    compare("in any order", lambda way: rows_per_s(way, mixed, batch.schema), rounds)
    compare("4 of the columns", lambda way: rows_per_s(way, payloads, some), rounds)
    compare(
        "all, framing and CRC too", lambda way: framed_per_s(way, payloads, batch.schema), rounds
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
