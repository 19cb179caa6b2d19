"""Compares what pipeprof says of a training on a GPU with what `torch.profiler` and NVML say of it.

    python -m benchmarks.gpu_training [--batches N] [--rounds N]

A residual network is trained in mixed precision on JPEGs, which Pillow decodes in workers. It needs
a CUDA GPU. Three questions are asked:

- Is the share of time that the device is starved, and the time of a copy to it, what the driver's
  records of the same run say?
- Does the training become as much faster as is promised, with the settings that are advised, and
  with batches that are in memory already?
- What does profiling cost beside a GPU? Plain epochs are the control.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count, cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import orjson
import pyarrow.compute as pc
import torch
from torch.utils.data import DataLoader, RandomSampler

import pipeprof
from benchmarks.gpu_costs import Case as CostCase
from benchmarks.gpu_costs import print_costs, small_cases
from benchmarks.gpu_model import RESNET_50, RESNET_152, Precision, Training
from benchmarks.gpu_trace import NEXT, BatchTruth, truths
from examples.train_photos import Photos
from pipeprof.bench_data import rows
from pipeprof.model import Profile

PHOTOS = 2000
_WARM_UP = 10
"""Batches before the first that is compared, in which the memory and kernels are prepared."""


@dataclass(frozen=True)
class Case:
    name: str
    workers: int
    blocks: Sequence[int] = RESNET_50
    precision: Precision = "bfloat16"
    pinned: bool = True
    batch: int = 64


def cases(cores: int) -> tuple[Case, ...]:
    """Return few workers, which starve the device, and as many as there are cores."""
    few, many = max(1, cores // 5), max(1, cores - 2)
    return (
        Case("few workers", few),
        Case("few workers, pageable", few, pinned=False),
        Case("few workers, float16", few, precision="float16"),
        Case("many workers", many),
        Case("ResNet-152", many, RESNET_152, batch=256),
        Case("ResNet-152, pageable", many, RESNET_152, pinned=False, batch=256),
        Case("ResNet-152, float16", many, RESNET_152, "float16", batch=256),
    )


def write_photos(folder: Path, photos: int = PHOTOS) -> None:
    """Write JPEGs of varied size in folders that are named by their class."""
    [table] = rows.batches(rows.get("images"), 1, 0, photos, photos)
    classes = pc.bit_wise_and(table["label"], 15).to_pylist()
    for number, (label, data) in enumerate(zip(classes, table["image"].to_pylist(), strict=True)):
        path = folder / f"class-{label}" / f"{number:06d}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


def loader_of(photos: Photos, case: Case, batches: int) -> DataLoader[Any]:
    drawn = RandomSampler(photos, replacement=True, num_samples=batches * case.batch)
    return DataLoader(
        photos, case.batch, sampler=drawn, num_workers=case.workers, pin_memory=case.pinned
    )


def train(batches: Iterable[Any], training: Training, device: torch.device) -> float:
    """Train on all batches, and return batches/s past the warm-up."""
    iterator, start_s = iter(batches), 0.0
    for number in count():
        with torch.profiler.record_function(NEXT):
            taken = next(iterator, None)
        batch = taken  # to free the one before takes time, which is no wait
        if number == _WARM_UP:
            synchronize(device)
            start_s = perf_counter()
        if batch is None:
            break
        training.step(*pipeprof.to_device(batch, device))
    synchronize(device)
    return (number - _WARM_UP) / (perf_counter() - start_s)


@dataclass(frozen=True)
class Comparison:
    """What a profile and the records of the driver say of the same batches."""

    verdict: str
    batches_per_s: float
    starved: float
    """Share of the time, by the profile."""
    truly_starved: float
    idle: float
    """Share in which nothing ran on the device, by the records. It has the gaps within a step."""
    waited: float
    """Share in which the host waited for a batch."""
    apart_s: float
    """Mean difference of the starved time of a batch, either sign."""
    utilisation: float | None
    """By NVML."""
    h2d_s: float
    truly_h2d_s: float

    @classmethod
    def of(cls, profile: Profile, truth: Sequence[BatchTruth], rate: float) -> Comparison:
        log = profile.batches
        compared = slice(_WARM_UP, len(truth) - 1)  # the last step has no end
        starved_s, h2d_s, asked_s, delivered_s = (
            np.array(getattr(log, name), dtype=float)[compared]
            for name in ("device_wait_s", "h2d_s", "asked_s", "delivered_s")
        )
        true = {
            name: np.array([getattr(batch, name) for batch in truth[compared]])
            for name in ("cycle_s", "idle_s", "starved_s", "h2d_s")
        }
        wall_s = true["cycle_s"].sum()
        return cls(
            verdict=profile.diagnosis.verdict,
            batches_per_s=rate,
            starved=float(starved_s.sum() / wall_s),
            truly_starved=float(true["starved_s"].sum() / wall_s),
            idle=float(true["idle_s"].sum() / wall_s),
            waited=float((delivered_s - asked_s).sum() / wall_s),
            apart_s=float(np.abs(starved_s - true["starved_s"]).mean()),
            utilisation=profile.device.utilisation if profile.device else None,
            h2d_s=float(h2d_s.mean()),
            truly_h2d_s=float(true["h2d_s"].mean()),
        )


def compared(case: Case, photos: Photos, batches: int, device: torch.device) -> Comparison:
    training = Training(case.blocks, case.precision, device)
    loader = pipeprof.wrap(loader_of(photos, case, batches))
    with torch.profiler.profile() as recorded:
        rate = train(loader, training, device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        recorded.export_chrome_trace(str(path))
        events = orjson.loads(path.read_bytes())["traceEvents"]
    return Comparison.of(loader.profile(), truths(events), rate)


def print_comparisons(photos: Photos, batches: int, device: torch.device) -> None:
    print("\nStarved share and copies: the profile, and the driver's records of the same batches")
    print(
        f"{'':<22}{'':>9}{'starved':>9}{'':>9}{'a batch':>9}{'host':>8}{'no':>8}{'NVML':>7}"
        f"{'copy':>9}{'':>9}\n"
        f"{'training':<22}{'batches/s':>9}{'profile':>9}{'records':>9}{'apart':>9}{'waits':>8}"
        f"{'kernel':>8}{'use':>7}{'profile':>9}{'records':>9}  verdict"
    )
    every = cases(os.cpu_count() or 1)
    compared(every[0], photos, batches, device)  # the first run of a process is slower
    for case in every:
        seen = compared(case, photos, batches, device)
        use = "" if seen.utilisation is None else f"{seen.utilisation:.0%}"
        print(
            f"{case.name:<22}{seen.batches_per_s:>9.1f}{seen.starved:>9.1%}{seen.truly_starved:>9.1%}"
            f"{seen.apart_s * 1e3:>6.2f} ms{seen.waited:>8.1%}{seen.idle:>8.1%}{use:>7}"
            f"{seen.h2d_s * 1e3:>6.2f} ms{seen.truly_h2d_s * 1e3:>6.2f} ms  {seen.verdict}",
            flush=True,
        )


def print_promises(photos: Photos, batches: int, rounds: int, device: torch.device) -> None:
    """Act on what the profile of few workers says, and print what was promised and what came."""
    print("\nWhat is promised, and what comes of it: samples/s")
    case = cases(os.cpu_count() or 1)[0]
    prepared = [
        [part.pin_memory() for part in batch]
        for batch in islice(loader_of(photos, replace(case, workers=8), 8), 8)
    ]
    training = Training(case.blocks, case.precision, device)
    for _ in range(rounds):
        loader = pipeprof.wrap(loader_of(photos, case, batches))
        rate = case.batch * train(loader, training, device)
        profile = loader.profile()
        starved = profile.diagnosis.starved_fraction
        fed = case.batch * train(islice(cycle(prepared), batches), training, device)
        print(
            f"{case.workers} workers: {rate:,.0f}, starved {starved:.1%}, so fed "
            f"{rate / (1 - starved):,.0f}; with batches in memory {fed:,.0f}"
        )
        for advice in profile.recommendations:
            if advice.setting == "num_workers" and advice.predicted_samples_per_s is not None:
                advised = replace(case, workers=int(advice.proposed))
                came = case.batch * train(loader_of(photos, advised, batches), training, device)
                low, high = advice.interval or (0.0, 0.0)
                print(
                    f"  {advised.workers} workers: promised {advice.predicted_samples_per_s:,.0f} "
                    f"({low:,.0f} to {high:,.0f}), came {came:,.0f}",
                    flush=True,
                )


def costly_cases(photos: Photos, rounds: int, device: torch.device) -> Sequence[CostCase]:
    case = cases(os.cpu_count() or 1)[3]
    training = Training(case.blocks, case.precision, device)
    return (
        *small_cases(device, 3 * rounds),
        CostCase(
            f"ResNet-50 fed by {case.workers} workers",
            lambda: loader_of(photos, case, 60),
            lambda batch: training.step(*batch),
            rounds,
        ),
    )


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_training")
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=8)
    asked = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print(f"No CUDA GPU here (torch {torch.__version__}): nothing was measured.")
        return 0
    device = torch.device("cuda")
    print(
        f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, torch {torch.__version__}, "
        f"{os.cpu_count()} cores"
    )
    torch.backends.cudnn.benchmark = True
    with tempfile.TemporaryDirectory() as folder:
        write_photos(Path(folder))
        photos = Photos(Path(folder))
        print_comparisons(photos, asked.batches, device)
        print_promises(photos, asked.batches, 2, device)
        print_costs(costly_cases(photos, asked.rounds, device), device)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
