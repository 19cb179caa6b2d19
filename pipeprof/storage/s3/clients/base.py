"""What asks a bucket: one file per client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pipeprof.storage.base import Buffer

if TYPE_CHECKING:
    from pipeprof.storage.s3.account import Account

Listed: TypeAlias = "tuple[str, int]"
"""A key, and the object's bytes."""


class Client(Protocol):
    """Of one bucket and one process; its methods are called by many threads.

    It asks once and never again by itself. All its errors are `Failure`.
    """

    def pages(self, folder: str, after: str) -> Iterator[Sequence[Listed]]:
        """What lies below ``folder`` (empty, or with a slash at its end), in the order of keys,
        from the one behind ``after`` on; a client that cannot begin there begins anew."""
        ...

    def size(self, key: str) -> int:
        """Of one object."""
        ...

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        """The bytes, or fewer; and when the answer began, by `perf_counter`: NaN where the client
        does not tell."""
        ...


CLIENTS = ("obstore", "pyarrow", "s3fs")
DEFAULT = "obstore"
"""It makes the most of one core: ``make bench-s3``."""
ANYWHERE = "s3fs"
"""It knows every setting that botocore knows, and is the least particular about answers."""


def connect(name: str, bucket: str, account: Account) -> Client:
    """A new client, one of `CLIENTS`. Raises `Failure`."""
    client: Client = import_module(f"pipeprof.storage.s3.clients.{name}").connect(bucket, account)
    return client
