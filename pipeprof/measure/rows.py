"""A row of figures for each batch, in a table, and as named columns of a `BatchLog`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeprof.measure.ring import RECORD_FIELDS

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Arrays = Mapping[str, Floats]
"""Columns of a `BatchLog` by name; NaN is unknown."""

LOOP_FIELDS = ("index", "nth", "epoch", "asked_s", "delivered_s", "done_s", "pause_s",
               "pause_kind", "others_s")  # fmt: skip
"""Columns that the training loop's own calls give."""
RECEIVE_FIELDS = ("received_s", "arrived_s", "pinned_s", "unpickled_cpu_s", "sampler_s")
"""Columns that main measures while it receives a batch."""
SOURCE_FIELDS = (*RECEIVE_FIELDS, *RECORD_FIELDS)
"""Columns that a `Source` fills in."""
COLUMNS = (*LOOP_FIELDS, *SOURCE_FIELDS)
WITHOUT_RECORD = (*LOOP_FIELDS, "worker", "samples")
"""Columns that are known of every batch; the others are unknown for one that is only timed."""
ONLY_TIMED = -1
"""The key of a batch that is not recorded in full. Keys of records are never negative."""
_WORKER = SOURCE_FIELDS.index("worker")
_INTEGERS = ("index", "epoch", "nth", "epoch_batches", "worker", "samples")
_INTEGERS_OR_UNKNOWN = ("pause_kind", "rested")
_EPOCH_BITS = 32


class Source(Protocol):
    """Knows which worker made each batch of a pass, and when."""

    def columns(self, keys: list[Any], moments: Floats) -> tuple[Floats, int]:
        """Return a table [keys, `SOURCE_FIELDS`], and how many records were lost.

        ``keys`` identify batches in the order of delivery; ``None`` stands for a batch without a
        key. Batches that are only timed are not among them. ``moments`` are when each was asked for
        and delivered: [keys, 2].
        """
        ...


def unknown_rows(count: int) -> Floats:
    """Return a table [count, `SOURCE_FIELDS`] in which everything is unknown."""
    table = np.full((count, len(SOURCE_FIELDS)), nan)
    table[:, _WORKER] = -2
    return table


def recorded(keys: list[Any]) -> Mask:
    """Return which batches are recorded in full."""
    if keys.count(ONLY_TIMED) == len(keys):
        return np.zeros(len(keys), dtype=bool)
    return np.array([key != ONLY_TIMED for key in keys], dtype=bool)


def batch_number(epoch: int, nth: int) -> int:
    """Return a number that no other batch of the same recorder has."""
    return epoch << _EPOCH_BITS | nth


def batch_numbers(arrays: Arrays) -> list[int]:
    """Return the `batch_number` of each row."""
    numbers: list[int] = (arrays["epoch"] * (1 << _EPOCH_BITS) + arrays["nth"]).astype(int).tolist()
    return numbers


def lookup(pairs: Mapping[int, tuple[float, float]], arrays: Arrays) -> Floats:
    """Return the pair of each row as [2, rows], from ``pairs`` by `batch_number`; NaN without."""
    table = np.full((2, len(arrays["nth"])), nan)
    for place, number in enumerate(batch_numbers(arrays) if pairs else ()):
        if number in pairs:
            table[:, place] = pairs[number]
    return table


def epoch_batches(epoch: Floats, nth: Floats) -> Floats:
    """Return for each row how many batches its epoch has so far."""
    if (epoch == epoch[0]).all():  # sorting is expensive
        return np.full(len(epoch), nth.max() + 1)
    epochs, which = np.unique(epoch, return_inverse=True)
    length = np.zeros(len(epochs))
    np.maximum.at(length, which, nth + 1)
    return length[which]


def as_array(numbers: Sequence[float]) -> Floats:
    """Convert ``numbers`` by `struct`, which is ten times as fast as NumPy."""
    return np.frombuffer(struct.pack(f"{len(numbers)}d", *numbers))


def none_if_nan(value: float) -> float | None:
    return None if value != value else value


def log_column(name: str, values: Floats) -> tuple[float | int | None, ...]:
    """Return a column as a `BatchLog` has it: empty when it is unknown for every batch."""
    if np.isnan(values).all():
        return ()
    if name in _INTEGERS:
        return tuple(int(value) for value in values)
    if name in _INTEGERS_OR_UNKNOWN:
        return tuple(None if value != value else int(value) for value in values)
    return tuple(none_if_nan(value) for value in values.tolist())
