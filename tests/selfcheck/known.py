"""Invented iterations of a training loop and their profile, in which every figure is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pipeprof.model import Diagnosis, Profile, Span, Stage, StageStats
from pipeprof.selfcheck.acts import sleeps
from pipeprof.selfcheck.clocked import ClockedFetch, ClockedSample, Mark
from pipeprof.selfcheck.evaluate import RESOURCES
from pipeprof.selfcheck.pipelines import Pipeline, Truth
from pipeprof.selfcheck.truth import AWAITED, Iteration
from tests.samples import sample_profile
from tests.stage_samples import stage_stats

COUNT = 20
CYCLE_S = 0.020


def iteration(n: int = 0, worker: bool = True) -> Iteration:
    """Return an iteration of 20 ms in which main waits 12 ms and then trains for 8 ms.

    Reading takes 2 ms, decoding 6, collating 1, and main requests the batch halfway through the
    read. It is serialised in 1 ms, is in the pipe for 1, and is unpickled in 2.
    """
    start = 100.0 + n * CYCLE_S
    asked = start + 0.001
    read = Span(Stage.READ, start, start + 0.002, bytes=500, requests=2)
    decode = Span(Stage.DECODE, start + 0.002, start + 0.008)
    sample = ClockedSample(n, (read, decode), start, start + 0.008, 5.0, 0.003)
    fetch = ClockedFetch((sample,), start + 0.008, start + 0.009, 0.004)
    begin, end = Mark(), Mark()
    if worker:
        begin, end = Mark(start + 0.0095, start + 0.011), Mark(start + 0.010, start + 0.013)
    return Iteration(asked, asked + 0.012, asked + CYCLE_S, fetch, begin, end)


def iterations(count: int = COUNT, **options: bool) -> list[Iteration]:
    return [iteration(n, **options) for n in range(count)]


TRUE_MS = {
    "read": 2, "decode": 6, "transform": 0, "fetch": 8, "collate": 1, "transfer": 4,
    "serialise": 1, "pipe": 1, "unpickle": 2, "reorder": 0, "ready": 0, "wait": 12, "step": 8,
    "cpu": 4, "off-core": 5, "run-queue": 5, "blocked": 3, "awaited in read": 1,
    "awaited in decode": 6, "awaited in transform": 0, "awaited in fetch": 0,
    "awaited in collate": 1, "awaited in transfer": 4, "awaited in main": 0,
}  # fmt: skip


_STALL_S = {
    name: ms * COUNT / 1e3
    for name, ms in (("decode", 6), ("transfer", 4), ("read", 1), ("collate", 1))
}


def pipeline(figures: Iterable[str] = ("read", "wait"), **truth: Any) -> Pipeline:
    expected = Truth("starved", ("decode",), tuple(figures), **truth)
    return Pipeline("made-up", "is made up", (sleeps(0.001),), expected, batches=COUNT)


def profile(**changes: Any) -> Profile:
    """Return the exact profile of `iterations`; ``changes`` replace fields."""
    stages = [name for name in TRUE_MS if name not in RESOURCES and not name.startswith(AWAITED)]
    return sample_profile(
        **{
            "measured_batches": COUNT,
            "stages": {name: stats(TRUE_MS[name]) for name in stages},
            "missing": {},
            "resources": {"run-queue": stats(2), "blocked": stats(3)},
            "stall_s": 0.012 * COUNT,
            "blame": _STALL_S,
            "awaited_in": _STALL_S,
            "diagnosis": diagnosis(),
            "recommendations": (),
            "findings": (),
            **changes,
        }
    )


def stats(mean_ms: float) -> StageStats:
    return stage_stats(mean_ms, COUNT, bytes=500 * COUNT, requests=2 * COUNT)


def diagnosis(**changes: Any) -> Diagnosis:
    exact = replace(sample_profile().diagnosis, starved_fraction=0.6, bottleneck="decode")
    return replace(exact, **changes)
