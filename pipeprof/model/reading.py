"""Define how data are read. Formats use these options to cut files into splits, and storage to
fetch bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OnError = Literal["fail", "skip"]
"""What to do with unreadable data: raise an error, or skip and count it."""


@dataclass(frozen=True)
class ReadOptions:
    """How files are cut into splits, and how their bytes are fetched. Sizes are in bytes.

    Examples:
        >>> options = pipeprof.ReadOptions(queue_depth=8, direct=True)
        >>> dataset = pipeprof.open_dataset("data/parquet", read=options)
    """

    split_bytes: int = 8 * 2**20
    """Target size on storage of a split, where the format can be split; 0: never split a file."""
    block_bytes: int = 4 * 2**20
    """Read CSV, JSON Lines, TFRecord and Arrow streams in blocks of this size. Parquet and Arrow
    files are read by row groups."""
    gap_bytes: int = 2**16
    """Merge two requests of a Parquet or Arrow file when they are at most this far apart; 0: never
    merge."""
    read_ahead: bool = True
    """Prefetch while a decoder is busy: at most two more blocks, or two splits of Parquet. Local
    files are prefetched one at a time, others concurrently."""
    request_bytes: int = 2**19
    """Local files: maximum size of one read request for data that are not in memory."""
    queue_depth: int = 4
    """Local files: number of concurrent read requests."""
    direct: bool = False
    """Local files: bypass the page cache (``O_DIRECT``) where the file system allows it."""
    forget: bool = False
    """Local files: evict data from the page cache after reading, so that it stays cold."""
    local_cache: str | None = None
    """Keep what is read in this folder, such as one on NVMe, and read it from there again. An
    object that was replaced by one of the same name and size is not noticed."""
    local_cache_bytes: int | None = None
    """Keep at most so many bytes; what is there stays."""
