"""Compares the rate of batches sent by a worker as a plain dict of tensors, and as a `Batch`.

    python benchmarks/transfer.py [pairs]

One worker reads the 26 columns of generated tables from Parquet; the consumer does nothing. Each
round runs dict, Batch, dict, Batch in this order, so that a drift of the machine affects all alike.
Dict against dict is the control.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from time import perf_counter
from typing import Any

from torch.utils.data import DataLoader

import pipeprof
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.loaders.tensors import Ragged

BATCHES = 150


def as_dict(batch: dict[str, Any]) -> dict[str, Any]:
    """Return each tensor on its own, as torch sends them, and a `Ragged` as its two tensors."""
    plain = {}
    for name, value in batch.items():
        if isinstance(value, Ragged):
            plain[name], plain[f"{name}.offsets"] = value.values, value.offsets
        else:
            plain[name] = value
    return plain


def batches_per_s(url: str, rows: int, plain: bool) -> float:
    dataset = pipeprof.open_dataset(
        url, batch_size=rows, repeat=True, transform=as_dict if plain else None
    )
    batches = iter(DataLoader(dataset, batch_size=None, num_workers=1, prefetch_factor=4))
    for _ in range(20):
        next(batches)
    start = perf_counter()
    for _ in range(BATCHES):
        next(batches)
    return BATCHES / (perf_counter() - start)


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def main(pairs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        generate(GenerateSpec(folder, "tabular", "parquet", 24_000_000))
        print(f"{pairs} rounds; ratios of batches/s within a round: median (least–most)")
        print("rows a batch   dict, batches/s   Batch against dict   dict against dict (control)")
        for rows in (128, 512, 2048, 8192):
            gains, control, rates = [], [], []
            for _ in range(pairs):
                first, packed, second, again = (
                    batches_per_s(folder, rows, plain) for plain in (True, False, True, False)
                )
                gains += [packed / first, again / second]
                control.append(second / first)
                rates += [first, second]
            print(
                f"{rows:>12,}   {spread(rates):>15}   {spread(gains):>18}   {spread(control):>16}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
