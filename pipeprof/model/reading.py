"""How bytes are asked of storage: one type for formats, which cut, and storage, which fetches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OnError = Literal["fail", "skip"]
"""What to do with data that cannot be read: raise an error, or leave it out and count it."""


@dataclass(frozen=True)
class ReadOptions:
    """How files are cut into splits, and how their bytes are fetched. Sizes are in bytes.

    Examples:
        >>> options = pipeprof.ReadOptions(queue_depth=8, direct=True)
        >>> dataset = pipeprof.open_dataset("data/parquet", read=options)
    """

    split_bytes: int = 8 * 2**20
    """Aim for splits of this size on storage, where the format can be cut; 0: never cut."""
    block_bytes: int = 4 * 2**20
    """Stream a split that has no parts in blocks of this size; fetch a row group of Parquet that is
    longer, and lies in one piece, a few columns at a time that come to as much."""
    gap_bytes: int = 2**16
    """Read over as many bytes that nobody asked for, between columns of a Parquet file, rather than
    ask twice; 0: never."""
    read_ahead: bool = True
    """Fetch what decoders will want next while one decodes: two more blocks at most, or of Parquet
    two splits; both at once, but from local files."""
    request_bytes: int = 2**19
    """Of a local file: read what is not in memory yet in requests of at most this size."""
    queue_depth: int = 4
    """Of a local file: so many of them at the same time."""
    direct: bool = False
    """Of a local file: past the page cache (``O_DIRECT``), where the file system allows that."""
    forget: bool = False
    """Of a local file: out of the page cache once it was read, so that it stays cold."""
