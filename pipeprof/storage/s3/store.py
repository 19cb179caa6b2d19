"""Read objects of S3 through one of several clients.

This module holds what must be the same for all clients: retries, the number of concurrent
requests, and the change to another client where one cannot read the store.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from time import perf_counter
from typing import Any, TypeVar

from pipeprof.errors import NothingFound, StorageError, UsageError
from pipeprof.measure.requests import note_request
from pipeprof.measure.stage_timer import record_read
from pipeprof.storage.base import Buffer, ObjectInfo, is_hidden
from pipeprof.storage.errors import ErrorKind, Failure, shrunk_error, storage_error
from pipeprof.storage.progress import Listing
from pipeprof.storage.retry import RetryPolicy, Tries, retry
from pipeprof.storage.s3.account import Account, read_account
from pipeprof.storage.s3.clients.base import CLIENTS, DEFAULT, FALLBACK, Client, Listed, connect
from pipeprof.storage.urls import redact

T = TypeVar("T")

CLIENT_OPTION = "s3_client"
"""The storage option that names a client; all other options are those of s3fs."""
_TRY_LISTING_AFTER = frozenset(
    (ErrorKind.MISSING, ErrorKind.DENIED, ErrorKind.REFUSED, ErrorKind.SERVER, ErrorKind.SHRUNK)
)
"""Failures to get an object's size after which the key is listed as a folder. The listing
succeeds, or gives the better reason."""


@dataclass(frozen=True)
class ClientChoice:
    """How a store is read. It is sent to other processes, with what the first requests showed."""

    client: str
    by_user: bool
    """Whether the user named the client, so that no other may replace it."""
    check_answers: bool = True
    """`Account.check_answers`."""
    notes: tuple[str, ...] = ()
    """Sentences for the report, each of them why the choice was changed."""


@dataclass
class _Connections:
    """The account, clients and threads of one process; a forked child creates its own."""

    account: Account
    clients: dict[tuple[str, ClientChoice], Client] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)
    pool: ThreadPoolExecutor | None = None


class S3Store:
    """Reads objects of S3; ``options`` are those of s3fs, and `CLIENT_OPTION`. Raises `UsageError`
    when there is no such client."""

    one_at_a_time = False

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = dict(options or {})
        name = self._options.pop(CLIENT_OPTION, None)
        if name not in (None, *CLIENTS):
            raise UsageError(f"{name!r} is no client of S3; those are {', '.join(CLIENTS)}")
        self._choice = ClientChoice(name or DEFAULT, by_user=name is not None)
        self._connections: dict[int, _Connections] = {}
        """Connections by process. Those of a parent stay open, because it may still use them."""

    @property
    def client(self) -> str:
        return self._choice.client

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"S3 was read by {self._choice.client}.", *self._choice.notes)

    def find(self, url: str) -> list[ObjectInfo]:
        bucket, key = _bucket_and_key(url)
        try:
            found = self._list(bucket, key, Listing(redact(url)))
        except Failure as failure:
            raise storage_error(failure, redact(url), "listed") from None
        if not found:
            raise NothingFound(f"{redact(url)} names no object with data; check the URL.")
        return [
            ObjectInfo(f"s3://{bucket}/{name}", f"{bucket}/{name}", size)
            for name, size in sorted(found)
        ]

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        start = perf_counter()
        if len(ranges) == 1:
            buffers = [self._read_one(item, *ranges[0])]
        else:
            buffers = self._read_many(item, ranges)
        count = sum(length for _, length in ranges)
        record_read(start, perf_counter(), count, len(ranges))
        return buffers

    def _list(self, bucket: str, key: str, listing: Listing) -> list[Listed]:
        """Return the objects that ``key`` names: one object, a glob, or a folder."""
        wildcard = re.search(r"[*?[]", key)
        if wildcard:
            folder = key[: wildcard.start()].rpartition("/")[0]
            matches = _matcher(key)
            objects = self._list_folder(bucket, f"{folder}/" if folder else "", listing)
            return [entry for entry in objects if matches(entry[0])]
        if key and not key.endswith("/"):
            try:
                return [(key, self._request(bucket, lambda client: client.size(key), Tries()))]
            except Failure as failure:
                if failure.kind not in _TRY_LISTING_AFTER:
                    raise
        folder = f"{key.rstrip('/')}/" if key else ""
        objects = self._list_folder(bucket, folder, listing)
        return [entry for entry in objects if not is_hidden(entry[0][len(folder) :])]

    def _list_folder(self, bucket: str, folder: str, listing: Listing) -> list[Listed]:
        """Return all objects in ``folder`` and in the folders below it, without the folders."""
        found: list[Listed] = []

        def list_remaining(client: Client) -> None:
            after = found[-1][0] if found else ""
            for page in client.pages(folder, after):
                found.extend(entry for entry in page if entry[0] > after)
                listing.found(len(found))

        self._request(bucket, list_remaining, Tries())
        return [entry for entry in found if not entry[0].endswith("/")]

    def _read_many(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        """Read several ranges at the same time; after one error the others are cancelled."""
        cancelled = threading.Event()
        try:
            pool = self._pool()
        except Failure as failure:
            raise storage_error(failure, item.url, "read") from None
        reads = [pool.submit(self._read_one, item, *each, cancelled) for each in ranges]
        try:
            return [read.result() for read in reads]
        except BaseException:
            cancelled.set()
            for read in reads:
                read.cancel()
            raise

    def _read_one(
        self,
        item: ObjectInfo,
        offset: int,
        length: int,
        cancelled: threading.Event | None = None,
    ) -> Buffer:
        if not length:
            return b""  # HTTP has no empty range
        bucket, _, key = item.path.partition("/")
        tries, began = Tries(), nan

        def get(client: Client) -> Buffer:
            nonlocal began
            if cancelled and cancelled.is_set():
                raise Failure(ErrorKind.REFUSED)  # the caller raises the first error instead
            buffer, began = client.get(key, offset, length)
            if len(buffer) != length:
                raise Failure(ErrorKind.SHORT)
            return buffer

        start, failed = perf_counter(), True
        try:
            buffer = self._request(bucket, get, tries)
            failed = False
            return buffer
        except Failure as failure:
            if failure.kind in (ErrorKind.SHORT, ErrorKind.SHRUNK):
                raise shrunk_error(item.url, offset, length) from None
            raise storage_error(failure, item.url, "read") from None
        finally:
            note_request(
                start,
                began,
                perf_counter(),
                0 if failed else length,
                retries=tries.retries,
                throttled=tries.throttled,
                failed=failed,
            )

    def _request(self, bucket: str, send: Callable[[Client], T], tries: Tries) -> T:
        """Return the result of ``send``, with retries, and by another client where one is needed.
        Raises `Failure`."""
        connections = self._of_this_process()
        policy = RetryPolicy(connections.account.attempts)
        while True:
            choice = self._choice
            try:
                client = self._client(connections, bucket, choice)
                return retry(partial(send, client), policy, tries)
            except Failure as failure:
                with connections.lock:
                    if self._choice is choice:  # no other thread has changed it meanwhile
                        better = _next_choice(choice, failure, connections.account)
                        if better is None:
                            raise
                        self._choice = better

    def _client(self, connections: _Connections, bucket: str, choice: ClientChoice) -> Client:
        with connections.lock:
            if (bucket, choice) not in connections.clients:
                if connections.account.s3fs_only and choice.client != FALLBACK:
                    raise Failure(ErrorKind.UNSUITED)
                account = replace(connections.account, check_answers=choice.check_answers)
                connections.clients[bucket, choice] = connect(choice.client, bucket, account)
            return connections.clients[bucket, choice]

    def _pool(self) -> ThreadPoolExecutor:
        connections = self._of_this_process()
        with connections.lock:
            if connections.pool is None:
                most = connections.account.max_concurrency
                connections.pool = ThreadPoolExecutor(most, "pipeprof-s3")
            return connections.pool

    def _of_this_process(self) -> _Connections:
        pid = os.getpid()
        if pid not in self._connections:
            # several threads may come here at once; the first result is kept
            self._connections.setdefault(pid, _Connections(read_account(self._options)))
        return self._connections[pid]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connections": {}}


def _next_choice(choice: ClientChoice, failure: Failure, account: Account) -> ClientChoice | None:
    """Return how to read the store after ``choice`` failed; None where nothing else may help."""
    if failure.kind is ErrorKind.CHECKSUM and choice.check_answers:
        note = (
            "The store sends checksums that are not those of the ranges asked for; they were not "
            "compared (AWS_RESPONSE_CHECKSUM_VALIDATION=when_required)."
        )
        return replace(choice, check_answers=False, notes=(*choice.notes, note))
    if (
        failure.kind not in (ErrorKind.UNSUITED, ErrorKind.ABSENT)
        or choice.by_user
        or choice.client == FALLBACK
    ):
        return None
    why = "it does not accept the answers of this store"
    if failure.kind is ErrorKind.ABSENT:
        why = "it is not installed, or cannot be loaded"
    elif account.s3fs_only:
        why = f"only {FALLBACK} supports the setting {account.s3fs_only}"
    note = f"It was not read by {choice.client}: {why}."
    return replace(choice, client=FALLBACK, notes=(*choice.notes, note))


def _bucket_and_key(url: str) -> tuple[str, str]:
    place = url.partition("://")[2]
    bucket, _, key = place.partition("/")
    if "@" in bucket:
        raise StorageError(
            f"{redact(url)} cannot be listed: its URL holds a user name; give credentials in the "
            "environment, in a profile or in the storage options."
        )
    if not bucket:
        raise UsageError(f"{redact(url)} names no bucket; write s3://BUCKET/PREFIX")
    return bucket, key


def _matcher(pattern: str) -> Callable[[str], object]:
    from fsspec.utils import glob_translate

    return re.compile(glob_translate(pattern)).match
