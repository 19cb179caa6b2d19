"""Define the result of `pipeprof sweep --local-cache`: what a cache on a local disk is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CachePass:
    """The same batches read in one state of the cache, over all rounds."""

    samples_per_s: float
    """Mean over the rounds."""
    starved_fraction: float
    """Share of the time for which the accelerator waited for data."""


@dataclass(frozen=True)
class LocalCache:
    """The best setting of a data set, with a cache on a local disk and without one."""

    folder: str
    limit_bytes: int | None
    """The size that the cache may have; ``None``: as much as is read."""
    uncached: CachePass
    """Every epoch without a cache."""
    filling: CachePass
    """The first epoch: data are read from the storage, and written to the cache."""
    cached: CachePass
    """Later epochs: data are read from the cache, with none of it in memory at first."""
    splits: int
    """Splits of the data set that a pass reads."""
    rounds: int
    """How often each pass was measured."""
    cached_bytes: int
    """Bytes that the cache held after a pass."""
    dataset_bytes: int
    """Bytes of the data set on storage, all columns."""
    gain: float
    """Rate of later epochs as a multiple of the rate without a cache."""
    gain_interval: tuple[float, float]
    """95 % interval of ``gain``, by the rounds."""
    difference: Literal["faster", "slower", "none"]
    """*none* when the interval contains 1, or the gain is within 3 % of it."""
    break_even: float | None
    """Epochs after which the whole training is as long as without a cache; ``None``: never."""
    break_even_interval: tuple[float | None, float | None]
    """``break_even`` at both ends of the intervals of the rates; ``None``: never."""
    share: float
    """Share of the data set that the cache may hold."""
    limited: CachePass
    """Later epochs if the cache holds this share and evicts nothing: `cached` where it is 1."""
    evicting_hits: float
    """Hits of a cache of that share that evicts what was used the longest ago, where each epoch has
    a new random order. In an order that repeats it has none, unless it holds all."""
    least_share: float | None
    """Least share of the data set in the cache with which the accelerator is fed; ``None`` if
    caching all of it is not enough."""
