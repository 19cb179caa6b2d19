"""What is known of each batch, as rows of a table and as columns by name."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeprof.measure.ring import FIELDS

Floats = npt.NDArray[np.float64]
Arrays = Mapping[str, Floats]
"""Columns of a `BatchLog` by name; NaN is unknown."""

MAIN = ("index", "nth", "epoch", "asked_s", "delivered_s", "done_s", "pause_s",
        "pause_kind")  # fmt: skip
WAY = ("received_s", "arrived_s", "pinned_s", "unpickled_cpu_s", "sampler_s")
"""What main sees of a batch's way to it."""
SEEN = (*WAY, *FIELDS)
"""What a `Source` fills in."""
COLUMNS = (*MAIN, *SEEN)
_WORKER = SEEN.index("worker")
_WHOLE = ("index", "epoch", "nth", "epoch_batches", "worker", "samples")
_WHOLE_OR_UNKNOWN = ("pause_kind", "rested")
_EPOCH_BITS = 32


class Source(Protocol):
    """Knows where the batches of a pass came from."""

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        """Of the batches with these ``keys``, in the order of their delivery: [keys, `SEEN`], and
        how many records were lost. A key is ``None`` when there is none, or it could not be had;
        ``moments`` are when each was asked for and delivered: [keys, 2]."""
        ...


def nothing_known(count: int) -> Floats:
    """[count, `SEEN`]"""
    table = np.full((count, len(SEEN)), nan)
    table[:, _WORKER] = -2
    return table


def batch_number(epoch: int, nth: int) -> int:
    """Tells the batch from all others of a recorder."""
    return epoch << _EPOCH_BITS | nth


def batch_numbers(arrays: Arrays) -> list[int]:
    """`batch_number` of each row."""
    numbers: list[int] = (arrays["epoch"] * (1 << _EPOCH_BITS) + arrays["nth"]).astype(int).tolist()
    return numbers


def noted(notes: Mapping[int, tuple[float, float]], arrays: Arrays) -> Floats:
    """[2, rows]: what ``notes`` by `batch_number` say of each."""
    found = np.full((2, len(arrays["nth"])), nan)
    for place, number in enumerate(batch_numbers(arrays) if notes else ()):
        if number in notes:
            found[:, place] = notes[number]
    return found


def epoch_batches(epoch: Floats, nth: Floats) -> Floats:
    """Of each row's epoch, by now."""
    if (epoch == epoch[0]).all():  # to sort them is dear
        return np.full(len(epoch), nth.max() + 1)
    known, which = np.unique(epoch, return_inverse=True)
    length = np.zeros(len(known))
    np.maximum.at(length, which, nth + 1)
    return length[which]


def as_array(numbers: Sequence[float]) -> Floats:
    """By `struct`, which is ten times as fast as NumPy."""
    return np.frombuffer(struct.pack(f"{len(numbers)}d", *numbers))


def known(value: float) -> float | None:
    return None if value != value else value


def log_column(name: str, values: Floats) -> tuple[float | int | None, ...]:
    """As a `BatchLog` has it; empty when nothing is known of any batch."""
    if np.isnan(values).all():
        return ()
    if name in _WHOLE:
        return tuple(int(value) for value in values)
    if name in _WHOLE_OR_UNKNOWN:
        return tuple(None if value != value else int(value) for value in values)
    return tuple(known(value) for value in values.tolist())
