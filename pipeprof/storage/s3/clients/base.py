"""Define the interface of S3 clients, and create one by its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pipeprof.storage.base import Buffer

if TYPE_CHECKING:
    from pipeprof.storage.s3.account import Account

Listed: TypeAlias = "tuple[str, int]"
"""The key of an object, and its size in bytes."""


class Client(Protocol):
    """A client of one bucket in one process, used by many threads at the same time. It sends each
    request once and does not retry. All its errors are `Failure`."""

    def pages(self, folder: str, after: str) -> Iterator[Sequence[Listed]]:
        """Yield the objects whose keys start with ``folder``, in the order of keys.

        ``folder`` is empty or ends with a slash. The listing starts behind the key ``after``; a
        client that cannot do so starts at the first key.
        """
        ...

    def size(self, key: str) -> int:
        """Return the bytes of one object."""
        ...

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        """Return the bytes, perhaps too few, and when the answer began. The time is of
        `perf_counter`; NaN where the client does not report it."""
        ...


CLIENTS = ("obstore", "pyarrow", "s3fs")
DEFAULT = "obstore"
"""The client with the highest throughput per core, by ``make bench-s3``."""
FALLBACK = "s3fs"
"""The client that supports every setting of botocore, and accepts the most unusual answers."""


def connect(name: str, bucket: str, account: Account) -> Client:
    """Create the client ``name``, one of `CLIENTS`. Raises `Failure`."""
    client: Client = import_module(f"pipeprof.storage.s3.clients.{name}").connect(bucket, account)
    return client
