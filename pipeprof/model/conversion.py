"""What a sweep found of converting a data set: a sample of it, written in other formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class ConversionSpec:
    """Which formats and storages to try a data set in."""

    formats: tuple[str, ...]
    """A format, or a format and its compression: ``csv``, ``parquet:zstd``."""
    storages: tuple[str, ...]
    """``local`` is a folder beside the results; else a folder's path or URL, without secrets."""
    sample_bytes: int
    """The most that is taken of the data set, as it lies in RAM."""
    row_group_bytes: tuple[int, ...] = ()
    """Of Parquet, in RAM; none: 8 MiB, or less where that gives too few files."""
    shard_bytes: tuple[int, ...] = ()
    """Least size of a file on storage; none: so that there are enough files for all workers."""
    seed: int = 0
    """Of the sample: the same seed takes the same rows."""


@dataclass(frozen=True)
class Sample:
    """Rows taken evenly from all over a data set."""

    rows: int
    ram_bytes: int
    share: float
    """Of the data set's bytes on storage."""
    parts: int
    """Splits that rows were taken from: row groups, ranges of a file, or files."""
    parts_in_all: int
    """Splits of the whole data set."""
    storage_bytes: int
    """What these rows occupy in the data set as it is."""


@dataclass(frozen=True)
class Copy:
    """The sample, written in one format to one storage."""

    url: str
    name: str
    """What was asked for: the format, and row groups and file sizes where there are several."""
    storage: str
    """As `ConversionSpec.storages` names it."""
    format: str
    compression: str
    row_group_bytes: int | None = None
    """Asked for; ``None``: not asked, or a format without row groups."""
    shard_bytes: int | None = None
    """Asked for."""
    rows: int = 0
    objects: int = 0
    bytes: int = 0
    """On storage."""
    write_s: float = 0.0
    """To encode and write it, in one process, to the end of each file's `fsync`."""
    skipped: str | None = None
    """Why it was not written: what the format cannot hold."""


@dataclass(frozen=True)
class Gain:
    """One copy against the data as it is, each at its best setting."""

    url: str
    """Of the copy."""
    trial: int
    """Index into ``trials`` of the copy's best."""
    speed: float
    """Its samples/s as a multiple of those of the data as it is."""
    speed_interval: tuple[float, float]
    """95 %, and the difference between the two measurements of the data as it is."""
    difference: Literal["faster", "slower", "none"]
    """``none``: no difference that this data can show."""
    storage: float
    """Its bytes on storage as a multiple."""
    read: float | None = None
    """Its bytes read a sample, as a multiple."""
    cpu: float | None = None
    """Its CPU time a sample, as a multiple."""


@dataclass(frozen=True)
class Conversion:
    """What would be gained by converting a data set."""

    copies: tuple[Copy, ...]
    sample: Sample | None = None
    """``None`` before it was taken."""
    baseline: int | None = None
    """Index into ``trials`` of the best of the data as it is."""
    control: int | None = None
    """Index into ``trials`` of the last: the data as it is at its best setting, once more."""
    gains: tuple[Gain, ...] = ()
    advice: Mapping[str, str] = field(default_factory=dict)
    """Storage → what to do, in one sentence."""
    layout: tuple[str, ...] = ()
    """What row groups and file sizes brought, where several were asked for."""
    kept: bool = False
    """Whether the copies still lie where they were written."""
