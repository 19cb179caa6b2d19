"""Define what each order of rows costs, and how it mixes: `pipeprof sweep --shuffle`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class OrderRuns:
    """The runs of one order of rows."""

    order: str
    """As `open_dataset(shuffle=…)` takes it, e.g. ``buffer:10000``."""
    samples_per_s: float
    """Mean of the runs."""
    starved_fraction: float
    """Share of the time for which the accelerator waited for data."""
    bytes_per_sample: float
    """Logical bytes read from storage."""
    splits_per_batch: float
    """From how many splits a batch draws: the inverse of the probability that two of its rows,
    drawn with replacement, come from the same split. 1 where all come from one."""
    neighbours: float
    """Share of the rows of a batch that follow the row before them in the file, too."""
    runs: int
    """How often it was measured."""
    speed: float
    """Rate as a multiple of that of the first order."""
    speed_interval: tuple[float, float]
    """95 % interval of ``speed``, by the runs."""
    difference: Literal["faster", "slower", "none"]
    """*none* when the interval contains 1, or the speed is within 3 % of it."""


@dataclass(frozen=True)
class RowOrders:
    """The orders of rows of a data set, at its best setting. The first is the reference."""

    orders: tuple[OrderRuns, ...]
    splits: int
    """Splits of the data set."""
    batch_size: int
    random_splits_per_batch: float
    """From how many splits a batch would draw if each of its rows were drawn from the whole data
    set: 1 / (1/B + (1 - 1/B)/S) for B rows and S equal splits."""
    impossible: tuple[str, ...] = ()
    """Orders that were asked for and cannot be had, with the reason; a sentence each."""
