"""Loaders with a known fault, and loops that train on what they load."""

from __future__ import annotations

import os
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from time import perf_counter, sleep, thread_time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.model import Profile, Recommendation

_BLOCK = bytes(65536)


class Samples(Dataset[Any]):
    """``make(index)`` for each of ``count`` indices."""

    def __init__(self, count: int, make: Callable[[int], Any]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        return self._make(index)


def tiny(index: int = 0) -> torch.Tensor:
    """A sample that takes no time."""
    return torch.zeros(4)


def nap(seconds: float, index: int) -> torch.Tensor:
    """Sleep about so long: equal sleeps of several workers would fall into step."""
    sleep(seconds * (0.8 + 0.4 * (index * 7 % 11) / 10))
    return tiny()


def burn(seconds: float, index: int = 0) -> torch.Tensor:
    """Compute for so much CPU time, without the interpreter's lock, as decoders do."""
    end = thread_time() + seconds
    while thread_time() < end:
        sha256(_BLOCK)
    return tiny()


def profiled(
    count: int,
    make: Callable[[int], Any],
    step_s: float,
    epochs: int = 1,
    threshold: float = 0.05,
    **settings: Any,
) -> Profile:
    """A run over ``count`` batches of one sample each, seen by pipeprof."""
    loader = pipeprof.wrap(DataLoader(Samples(count, make), **settings), whole=True)
    for _ in range(epochs):
        for _batch in loader:
            sleep(step_s)
    return loader.profile(threshold)


def rate(count: int, make: Callable[[int], Any], step_s: float, **settings: Any) -> float:
    """Batches/s of such a run as nobody sees it; the first quarter fills buffers, and is left
    out."""
    moments = []
    for _batch in DataLoader(Samples(count, make), **settings):
        moments.append(perf_counter())
        sleep(step_s)
    first = len(moments) // 4
    return (len(moments) - 1 - first) / (moments[-1] - moments[first])


def faster(
    times: float, count: int, make: Callable[[int], Any], step_s: float,
    before: dict[str, Any], after: dict[str, Any],
) -> bool:  # fmt: skip
    """Whether ``after`` is at least ``times`` as fast as ``before``, in one of five goes at most:
    other processes come and go."""
    return any(
        rate(count, make, step_s, **after) >= times * rate(count, make, step_s, **before)
        for _ in range(5)
    )


def settings_of(advice: Recommendation) -> dict[str, Any]:
    """What ``advice`` says to pass to the DataLoader, taken at its word."""
    if advice.setting == "collate_fn":
        given: dict[str, Any] = {"torch": torch}
        assert advice.code is not None
        exec(advice.code.partition("DataLoader")[0], given)
        return {"collate_fn": given["pack"]}
    return {advice.setting: literal_eval(advice.proposed)}


def codes(profile: Profile) -> set[str]:
    """Findings, but for what a busy machine, a short run, or another test may bring."""
    found = {finding.code for finding in profile.findings}
    return found - {
        "noisy-neighbour", "main-process-bound", "fewer-cores-than-shown", "too-few-batches",
        "fork-with-threads",
    }  # fmt: skip


def text_of(profile: Profile, code: str) -> str:
    found = {finding.code: f"{finding.evidence} {finding.fix}" for finding in profile.findings}
    assert code in found, f"{profile.diagnosis.headline} {profile.stages} {found}"
    return found[code]


def advises_more_workers(profile: Profile) -> bool:
    return any(
        advice.setting == "num_workers" and int(advice.proposed) > profile.config.num_workers
        for advice in profile.recommendations
    )


@contextmanager
def on_cores(count: int) -> Iterator[int]:
    """This process, and those that it starts, on so many cores, or on all when there are fewer."""
    before = os.sched_getaffinity(0)
    chosen = sorted(before)[:count]
    os.sched_setaffinity(0, chosen)
    try:
        yield len(chosen)
    finally:
        os.sched_setaffinity(0, before)
