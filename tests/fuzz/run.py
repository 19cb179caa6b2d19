"""Fuzzing one target for a while."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from zlib import crc32

from tests.fuzz.cage import Outcome, run_caged
from tests.fuzz.targets import Target

FOUND = Path(__file__).parent / "found"
_AT_ONCE = 200
"""Inputs for one forked process."""


@dataclass
class Tally:
    """What has become of a target's inputs."""

    counts: Counter[str] = field(default_factory=Counter)
    """Outcome → inputs."""
    faults: dict[bytes, Outcome] = field(default_factory=dict)
    """One input for each kind of fault and detail."""

    @property
    def inputs(self) -> int:
        return self.counts.total()


def fuzz(
    target: Target, seed: int, tally: Tally, seconds: float = math.inf, inputs: float = math.inf
) -> None:
    """Go on with the target's inputs of this seed where ``tally`` ends, for so long or so many."""
    end = time.monotonic() + seconds
    most = tally.inputs + inputs
    while time.monotonic() < end and tally.inputs < most:
        first = tally.inputs
        count = int(min(_AT_ONCE, most - first))
        made = [make(target, seed, number) for number in range(first, first + count)]
        for data, outcome in zip(made, run_caged(target.check, made), strict=False):
            tally.counts[outcome.kind] += 1
            if outcome.is_fault and outcome not in tally.faults.values():
                tally.faults[data] = outcome


def make(target: Target, seed: int, number: int) -> bytes:
    """The input of this number: the same for the same seed, on every machine."""
    return target.make(Random(f"{target.name} {seed} {number}"))


def keep(target: Target, data: bytes) -> Path:
    """Save an input for `tests/fuzz/test_fuzz.py`."""
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{target.name}.{crc32(data):08x}"
    path.write_bytes(data)
    return path
