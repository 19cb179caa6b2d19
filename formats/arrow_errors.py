"""Turn what pyarrow says of damaged bytes into our errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.types import first_line


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever Arrow says of damaged bytes into `CorruptData`."""
    try:
        yield
    except (
        pa.ArrowException,
        EOFError,
        OSError,
        ValueError,
        OverflowError,
        IndexError,
        KeyError,
        MemoryError,
    ) as error:
        if "decrypt" in str(error):
            raise CorruptData(
                "columns are encrypted, which is not read; ask for others with columns=…"
            ) from None
        raise CorruptData(f"{what} is damaged ({first_line(error)}).") from None
