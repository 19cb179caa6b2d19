"""Define what a sweep reports about converting a data set to other formats. A sample of the data is
written in each format and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class ConversionSpec:
    """The formats and storages in which to try a data set."""

    formats: tuple[str, ...]
    """Names of formats, with or without a compression: ``csv``, ``parquet:zstd``."""
    storages: tuple[str, ...]
    """``local`` is a folder next to the results; any other entry is a path or URL, without
    secrets."""
    sample_bytes: int
    """Most data to take as the sample, measured in RAM."""
    row_group_bytes: tuple[int, ...] = ()
    """Sizes in RAM of Parquet row groups to try. Empty: 8 MiB, or less where that gives too few
    files."""
    shard_bytes: tuple[int, ...] = ()
    """Minimum file sizes on storage to try. Empty: small enough that all workers have files."""
    seed: int = 0
    """Seed of the sample: the same seed selects the same rows."""


@dataclass(frozen=True)
class Sample:
    """Rows taken evenly from the whole data set."""

    rows: int
    ram_bytes: int
    share: float
    """Share of the data set's bytes on storage."""
    parts: int
    """Splits that rows were taken from: row groups, ranges of a file, or files."""
    parts_in_all: int
    """Splits of the whole data set."""
    storage_bytes: int
    """Size of these rows on storage in the original data set."""


@dataclass(frozen=True)
class Copy:
    """The sample, written in one format to one storage."""

    url: str
    name: str
    """The requested format, with row group and file size where several were requested."""
    storage: str
    """Name of the storage, as in `ConversionSpec.storages`."""
    format: str
    compression: str
    row_group_bytes: int | None = None
    """Requested size; ``None``: none was requested, or the format has no row groups."""
    shard_bytes: int | None = None
    """Requested minimum file size."""
    rows: int = 0
    objects: int = 0
    bytes: int = 0
    """Size on storage."""
    write_s: float = 0.0
    """Time to encode and write the copy in one process, up to the `fsync` of each file."""
    skipped: str | None = None
    """Why the copy was not written: the data that the format cannot represent."""


@dataclass(frozen=True)
class Gain:
    """One data set compared with the original data, each at its best setting. It is a copy, or the
    original data by another reader."""

    url: str
    """URL as in its trials: that of a copy, or of the original data, with the reader."""
    trial: int
    """Index into ``trials`` of its best trial."""
    speed: float
    """Samples/s as a multiple of those of the original."""
    speed_interval: tuple[float, float]
    """95 % interval, widened by the difference between the two measurements of the original, and up
    to the settings that were not tried if ``searched`` is false."""
    difference: Literal["faster", "slower", "none"]
    """``none``: the data show no difference."""
    storage: float
    """Bytes on storage as a multiple of the original."""
    read: float | None = None
    """Bytes read per sample as a multiple of the original."""
    cpu: float | None = None
    """CPU time per sample as a multiple of the original."""
    searched: bool = True
    """Whether its best setting was tried. A search ends earlier where another form of the data is
    out of reach."""


@dataclass(frozen=True)
class Conversion:
    """What converting a data set would bring."""

    copies: tuple[Copy, ...]
    sample: Sample | None = None
    """``None`` until the sample has been taken."""
    baseline: int | None = None
    """Index into ``trials`` of the best trial on the original data."""
    control: int | None = None
    """Index into ``trials`` of the last trial, which repeats the baseline's setting."""
    gains: tuple[Gain, ...] = ()
    advice: Mapping[str, str] = field(default_factory=dict)
    """Storage → one sentence that says what to do."""
    layout: tuple[str, ...] = ()
    """What each row group and file size brought, where several were requested."""
    kept: bool = False
    """Whether the copies still exist where they were written."""
