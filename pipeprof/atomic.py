"""Files that appear under their name whole, or not at all."""

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
    """A file to write that becomes ``target`` when the body ends without an exception: temporary
    file beside it, fsync, rename. Raises OSError; whatever is raised, nothing is left behind.
    """
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        # unbuffered: closing after an error must not try to write once more
        with open(temporary, "xb", buffering=0) as file:
            yield file
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:  # also on Ctrl-C; after the rename there is nothing left to remove
        with suppress(OSError):
            temporary.unlink()


def is_leftover(candidate: str, name: str) -> bool:
    """Whether the file ``candidate`` is what a killed writer of ``name`` left beside it."""
    return re.fullmatch(rf"\.{re.escape(name[:200])}\.[0-9a-f]{{8}}\.tmp", candidate) is not None


def write_all(file: Writable, data: bytes | bytearray | memoryview) -> None:
    """A raw file may take less than it is given, when the disk is nearly full."""
    rest = memoryview(data)
    while rest:
        taken = file.write(rest)
        rest = rest[len(rest) if taken is None else taken :]
