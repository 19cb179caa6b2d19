"""Compares formats for images: the same JPEGs as a folder, in tars, tables and records.

    python -m benchmarks.formats [--images N] [--seconds S] [--bouts N] [--seed N]

Two workers decode batches of 32 images by Pillow. The files lie on the local disk and are evicted
from memory before each run. As root they also lie on S3, behind a link of 1 Gbit/s with a round
trip of 20 ms. Each format is read in the order of its files, and shuffled. A bout runs all of them
in random order. A ratio is to the folder of images in the same bout. The folder runs twice, which
is the control. The starved fraction is that of runs with an emulated accelerator.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from torch.utils.data import DataLoader

import pipeprof
from benchmarks.prediction import can_be_run
from pipeprof import formats
from pipeprof.bench_data import rows
from pipeprof.bench_data.generate import suffix_of
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import ReadOptions
from pipeprof.storage.page_cache import evict
from pipeprof.units import format_bytes, format_share
from tests.lab.far import NO_ETAG
from tests.lab.net import shaped_link
from tests.s3.server import serving

LAYOUTS = {
    "folder": ("images", "none"), "webdataset": ("webdataset", "none"),
    "tfrecord": ("tfrecord", "none"), "parquet": ("parquet", "none"), "arrow": ("arrow", "none"),
    "lance": ("lance", "none"), "jsonl": ("jsonl", "none"), "mds": ("mds", "none"),
    "folder again": ("images", "none"),
}  # fmt: skip
"""Name → format and compression. JPEGs are compressed already."""
BATCH, WORKERS, SIDE = 32, 2, 160
STEPS_S = (0.02, 0.05, 0.1)
_FILES, _ROW_GROUP = 8, 64
_MBIT, _ROUND_TRIP_MS = 1000.0, 20.0


@dataclass(frozen=True)
class Place:
    """Where all formats lie."""

    name: str
    root: str
    folder: Path
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Run:
    samples_per_s: float
    cpu_s: float
    """CPU time of all processes per sample."""
    starved: float


def write(folder: Path, images: int, seed: int) -> None:
    """Write the same images in each format."""
    kind = rows.get("images")
    count = -(-images // _FILES)
    for number in range(_FILES):
        first, last = number * count, min((number + 1) * count, images)
        [batch] = rows.batches(kind, seed, first, last, images)
        table = pa.table({"image": batch["image"], "label": _ten_classes(batch["label"])})
        for name, (form, compression) in LAYOUTS.items():
            if form == "images":
                _write_folder(folder / "folder", table, first)
                continue
            encoder = formats.get(form).encoder(table.schema, compression)
            groups = table.to_batches(max_chunksize=_ROW_GROUP)
            data = b"".join([*map(encoder.write, groups), encoder.finish()])
            path = folder / name / f"part-{number}{suffix_of(form, compression)}"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(data)


def _ten_classes(labels: pa.Array) -> pa.Array:
    return pa.array(labels.to_numpy() % 10, pa.int64())


def _write_folder(folder: Path, table: pa.Table, first: int) -> None:
    for number, row in enumerate(table.to_pylist(), first):
        path = folder / f"class-{row['label']}" / f"{number:06d}.jpg"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(row["image"])


def decode(batch: Any) -> dict[str, torch.Tensor]:
    images = batch["image"]
    pixels = [_pixels(images.bytes_at(row)) for row in range(len(images))]
    return {"image": torch.from_numpy(np.stack(pixels)), "label": batch["label"]}


def _pixels(data: bytes) -> Any:
    image = Image.open(io.BytesIO(data))
    image.draft("RGB", (SIDE, SIDE))
    return np.asarray(image.convert("RGB").resize((SIDE, SIDE)))


def run(place: Place, name: str, shuffle: bool, seconds: float, step_s: float = 0.0) -> Run:
    """Read for ``seconds`` after a warm-up, and then to the end of a batch."""
    layout = name.removesuffix(" again")
    evict([str(path) for path in (place.folder / layout).rglob("*") if path.is_file()])
    dataset = pipeprof.open_dataset(
        f"{place.root}/{layout}", batch_size=BATCH, shuffle=shuffle, repeat=True, transform=decode,
        columns=["image", "label"], types={"image": "binary"}, storage_options=place.options,
        read=ReadOptions(forget=True),
    )  # fmt: skip
    start = "spawn" if dataset.unforkable else "fork"
    loader = pipeprof.wrap(
        DataLoader(dataset, None, num_workers=WORKERS, multiprocessing_context=start)
    )
    accelerator, cpu_s = EmulatedAccelerator(step_s), _cpu_s()
    samples = total = 0
    begin = perf_counter()
    end = begin + 60
    for number, batch in enumerate(loader):
        total += len(batch["label"])
        if number == 2 * WORKERS:
            begin, samples = perf_counter(), 0
            end = begin + seconds
        samples += len(batch["label"])
        accelerator.step(batch)
        if perf_counter() >= end:
            break
    took = perf_counter() - begin
    profile = loader.profile()
    del loader, batch
    return Run(samples / took, (_cpu_s() - cpu_s) / total, profile.diagnosis.starved_fraction)


def _cpu_s() -> float:
    used = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in used)


def compare(place: Place, shuffle: bool, options: argparse.Namespace) -> None:
    """Print a table of all formats."""
    chance = random.Random(options.seed)
    bouts: list[dict[str, Run]] = []
    for _ in range(options.bouts):
        names = chance.sample(list(LAYOUTS), len(LAYOUTS))
        bouts.append({name: run(place, name, shuffle, options.seconds) for name in names})
    print(f"\n{place.name}, {'shuffled' if shuffle else 'in the order of the files'}")
    print(f"{'':<14}{'samples/s':>10}{'against the folder':>28}{'CPU a sample':>15}", flush=True)
    for name in LAYOUTS:
        runs = [bout[name] for bout in bouts]
        ratios = [bout[name].samples_per_s / bout["folder"].samples_per_s for bout in bouts]
        spread = f"{median(ratios):.2f}× ({min(ratios):.2f} to {max(ratios):.2f})"
        cpu_ms = median(each.cpu_s for each in runs) * 1000
        rate = median(each.samples_per_s for each in runs)
        print(f"{name:<14}{rate:>10.0f}{spread:>28}{cpu_ms:>12.2f} ms", flush=True)


def starve(place: Place, options: argparse.Namespace) -> None:
    """Print the starved fraction of each format for each step time."""
    steps = "".join(f"{step_s * 1000:>9.0f} ms" for step_s in STEPS_S)
    print(f"\n{place.name}: starved fraction at a step of\n{'':<14}{steps}")
    for name in LAYOUTS:
        shares = [
            format_share(run(place, name, False, options.seconds, step_s).starved)
            for step_s in STEPS_S
        ]
        print(f"{name:<14}{''.join(f'{share:>12}' for share in shares)}", flush=True)


@contextmanager
def places(folder: Path) -> Iterator[Sequence[Place]]:
    """Yield the local disk, and where this is root, S3 behind a link."""
    local = Place("local disk, cold", str(folder), folder)
    if not can_be_run("shaped link"):
        yield (local,)
        return
    with shaped_link(_MBIT, _ROUND_TRIP_MS) as link:
        log = folder.parent / "server.log"
        with serving(folder.parent, log, link.address, link.inside, NO_ETAG) as server:
            name = f"S3 at {_ROUND_TRIP_MS:.0f} ms"
            yield local, Place(name, f"s3://{folder.name}", folder, server.options())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__)
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run")
    parser.add_argument("--bouts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "images")
        write(folder, options.images, options.seed)
        print(f"{options.images:,} JPEGs, {WORKERS} workers, batch {BATCH}; --seed {options.seed}")
        for name in list(LAYOUTS)[:-1]:
            files = [path for path in (folder / name).rglob("*") if path.is_file()]
            size = format_bytes(sum(path.stat().st_size for path in files) / options.images)
            print(f"{name:<14}{len(files):>6} files, {size} a sample")
        with places(folder) as found:
            for place in found:
                for shuffle in (False, True):
                    compare(place, shuffle, options)
            starve(found[0], options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
