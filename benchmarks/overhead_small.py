"""Measures pipeprof where it does little: on import, around a plain iterable, and idle."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from itertools import islice
from statistics import mean, median
from time import perf_counter
from timeit import Timer
from typing import Any

import torch

import pipeprof
from benchmarks.overhead_cases import PERIOD
from pipeprof.units import format_duration

_REPEATS = 7
_STRETCH = 256
_IMPORT = """
import torch.utils.data
from time import perf_counter
start = perf_counter()
import pipeprof
imported = perf_counter()
pipeprof.wrap
print(imported - start, perf_counter() - imported)
"""


def small_costs() -> list[tuple[str, list[float]]]:
    """Return the name of each cost, and all its measurements in seconds."""
    imports = [_import_s() for _ in range(_REPEATS)]
    steps = [torch.zeros(8)] * (5 * PERIOD)
    bare_s = median(_stretches_s(steps))
    wrapped = [_stretches_s(pipeprof.wrap(steps)) for _ in imports]
    with_stage = Timer("with stage('decode'): pass", globals={"stage": pipeprof.stage})
    decorated = Timer("idle()", globals={"idle": pipeprof.stage("decode")(_idle)})
    bare = Timer("idle()", globals={"idle": _idle})
    return [
        ("import pipeprof", [first for first, _ in imports]),
        ("pipeprof.wrap, first use, torch loaded", [second for _, second in imports]),
        ("a step of wrap(list): host's side only", [median(all_s) - bare_s for all_s in wrapped]),
        ("  with what is done now and then", [mean(all_s) - bare_s for all_s in wrapped]),
        ("with pipeprof.stage(...), nobody profiles", _each_s(with_stage)),
        (
            "@pipeprof.stage(...), nobody profiles",
            [one - other for one, other in zip(_each_s(decorated), _each_s(bare), strict=True)],
        ),
    ]


def print_small_costs() -> None:
    print("\nbeside the training loop: median (least–most)")
    for name, times_s in small_costs():
        middle, least, most = map(said, (median(times_s), min(times_s), max(times_s)))
        print(f"  {name:<44}{middle:>9}   ({least}–{most})", flush=True)


def said(seconds: float) -> str:
    return format_duration(seconds) if seconds >= 1e-6 else f"{seconds * 1e9:.0f} ns"


def _idle() -> None:
    pass


def _import_s() -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True
    )
    first, second = done.stdout.split()
    return float(first), float(second)


def _stretches_s(batches: Iterable[Any]) -> list[float]:
    """Return seconds per batch of each `_STRETCH` batches, after the first `PERIOD` batches."""
    iterator, times_s = iter(batches), []
    for _ in islice(iterator, PERIOD):
        pass
    for _ in range(4 * PERIOD // _STRETCH):
        start = perf_counter()
        for _ in islice(iterator, _STRETCH):
            pass
        times_s.append((perf_counter() - start) / _STRETCH)
    return times_s


def _each_s(timer: Timer) -> list[float]:
    count = 50_000
    return [seconds / count for seconds in timer.repeat(_REPEATS, count)]
