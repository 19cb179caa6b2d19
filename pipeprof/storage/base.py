"""What a storage is: objects with sizes, and byte ranges of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Buffer: TypeAlias = "bytes | bytearray | memoryview"


@dataclass(frozen=True)
class ObjectInfo:
    """One file or object."""

    url: str
    """Without credentials."""
    path: str
    """As its store reads it."""
    size: int
    """Bytes."""


class Store(Protocol):
    """Reads byte ranges; picklable, and safe to use in a process forked from its maker's."""

    @property
    def client(self) -> str:
        """What asks for the bytes, in a word or two."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the results should know of how it was read."""
        ...

    @property
    def one_at_a_time(self) -> bool:
        """Whether reads of several threads wait for one another."""
        ...

    def find(self, url: str) -> list[ObjectInfo]:
        """The objects that ``url`` names: a file, all files under a folder, or a glob; sorted.

        Names that start with ``_`` or ``.`` are left out, as is usual for data sets.
        Raises `NothingFound`, `StorageError`.
        """
        ...

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        """The bytes of each (offset, length); recorded as one `read` span.

        Raises `StorageError`, also when the object has become shorter.
        """
        ...


def is_hidden(relative: str) -> bool:
    """Whether a path below a data set's root is not data: ``_SUCCESS``, ``.crc``, a manifest."""
    return any(part.startswith(("_", ".")) for part in relative.split("/"))
