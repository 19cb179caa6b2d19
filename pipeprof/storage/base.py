"""Define the interface of a storage: objects with sizes, of which byte ranges are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Buffer: TypeAlias = "bytes | bytearray | memoryview"


@dataclass(frozen=True)
class ObjectInfo:
    """One file, or one object of an object store."""

    url: str
    """The URL, without credentials."""
    path: str
    """The name by which the store reads the object."""
    size: int
    """The size in bytes."""


class Store(Protocol):
    """Lists objects and reads byte ranges of them. A store can be pickled, and can be used in a
    process that is forked after it was created."""

    @property
    def client(self) -> str:
        """The short name of what requests the bytes, for example ``obstore``."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report about how the data was read."""
        ...

    @property
    def one_at_a_time(self) -> bool:
        """Whether the reads of several threads run one after another."""
        ...

    def find(self, url: str) -> list[ObjectInfo]:
        """Return the objects that ``url`` names, sorted: a file, a folder's files, or a glob's.

        Names in a folder that start with ``_`` or ``.`` are left out, as is usual for data sets.
        Raises `NothingFound`, `StorageError`.
        """
        ...

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        """Return the bytes of each (offset, length), and record this as one read. Raises
        `StorageError`, also when the object is shorter than when it was listed."""
        ...


def is_hidden(relative: str) -> bool:
    """Return whether a path below a data set's root is not data: ``_SUCCESS``, a manifest."""
    return any(part.startswith(("_", ".")) for part in relative.split("/"))
