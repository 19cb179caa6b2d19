"""Write files atomically: a file appears under its name complete, or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol


class Writable(Protocol):
    def write(self, data: Any, /) -> int | None: ...


@contextmanager
def whole_file(target: Path) -> Iterator[Writable]:
    """Open a file that becomes ``target`` when the body ends without an exception.

    The data go to a temporary file in the same folder, which is synced and then renamed. Any error
    removes the temporary file. Raises OSError.
    """
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        # unbuffered: closing after an error must not try to write once more
        with open(temporary, "xb", buffering=0) as file:
            yield file
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:  # also on Ctrl-C; after the rename there is no such file
        with suppress(OSError):
            temporary.unlink()


def is_leftover(candidate: str, name: str) -> bool:
    """Return whether ``candidate`` is a temporary file that a killed writer of ``name`` left."""
    return re.fullmatch(rf"\.{re.escape(name[:200])}\.[0-9a-f]{{8}}\.tmp", candidate) is not None


def write_all(file: Writable, data: bytes | bytearray | memoryview) -> None:
    """Write all of ``data``. A raw file may accept only a part when the disk is nearly full."""
    remaining = memoryview(data)
    while remaining:
        written = file.write(remaining)
        remaining = remaining[len(remaining) if written is None else written :]
