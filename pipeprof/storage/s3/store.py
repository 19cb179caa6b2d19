"""A bucket's objects, whichever client asks for them.

What all clients share is here, so that it is the same with each: what is tried again, how much is
asked for at a time, and what is done about a store that a client cannot read.
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
from pipeprof.storage.errors import ErrorKind, Failure, explained
from pipeprof.storage.progress import Listing
from pipeprof.storage.retry import RetryPolicy, Tries, retry
from pipeprof.storage.s3.account import Account, read_account
from pipeprof.storage.s3.clients.base import ANYWHERE, CLIENTS, DEFAULT, Client, Listed, connect
from pipeprof.storage.urls import redact

T = TypeVar("T")

CHOICE = "s3_client"
"""The storage option that names a client; all others are s3fs's."""
_TELLS_ALL = frozenset((ErrorKind.DENIED, ErrorKind.REFUSED, ErrorKind.SERVER, ErrorKind.SHRUNK))
"""Refusals of a single object, after which a listing may do, or tells why not."""


@dataclass(frozen=True)
class ClientChoice:
    """How a store is read; what the first requests taught goes with it into other processes."""

    client: str
    chosen: bool
    """By the user, so that no other is taken instead."""
    check_answers: bool = True
    notes: tuple[str, ...] = ()


@dataclass
class _Mine:
    """Of one process: nothing of it outlives a fork."""

    account: Account
    clients: dict[tuple[str, ClientChoice], Client] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)
    pool: ThreadPoolExecutor | None = None


class S3Store:
    """Objects of S3; ``options`` are those of s3fs, and `CHOICE`. Raises `UsageError`."""

    one_at_a_time = False

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = dict(options or {})
        name = self._options.pop(CHOICE, None)
        if name not in (None, *CLIENTS):
            raise UsageError(f"{name!r} is no client of S3; those are {', '.join(CLIENTS)}")
        self._choice = ClientChoice(name or DEFAULT, chosen=name is not None)
        self._mine: dict[int, _Mine] = {}
        """By process; those of parents stay, as to close what is shared would disturb them."""

    @property
    def client(self) -> str:
        return self._choice.client

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"S3 was read by {self._choice.client}.", *self._choice.notes)

    def find(self, url: str) -> list[ObjectInfo]:
        bucket, key = _bucket_and_key(url)
        try:
            found = self._found(bucket, key, Listing(redact(url)))
        except Failure as failure:
            raise explained(failure, redact(url), "listed") from None
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

    def _found(self, bucket: str, key: str, listing: Listing) -> list[Listed]:
        magic = re.search(r"[*?[]", key)
        if magic:
            folder = key[: magic.start()].rpartition("/")[0]
            matches = _matcher(key)
            below = self._below(bucket, f"{folder}/" if folder else "", listing)
            return [entry for entry in below if matches(entry[0])]
        if key and not key.endswith("/"):
            try:
                return [(key, self._ask(bucket, lambda client: client.size(key), Tries()))]
            except Failure as failure:
                if failure.kind not in _TELLS_ALL | {ErrorKind.MISSING}:
                    raise
        folder = f"{key.rstrip('/')}/" if key else ""
        below = self._below(bucket, folder, listing)
        return [entry for entry in below if not is_hidden(entry[0][len(folder) :])]

    def _below(self, bucket: str, folder: str, listing: Listing) -> list[Listed]:
        """All objects in ``folder``, and in those within it; not what stands for a folder."""
        found: list[Listed] = []

        def go_on(client: Client) -> None:
            after = found[-1][0] if found else ""
            for page in client.pages(folder, after):
                found.extend(entry for entry in page if entry[0] > after)
                listing.found(len(found))

        self._ask(bucket, go_on, Tries())
        return [entry for entry in found if not entry[0].endswith("/")]

    def _read_many(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        given_up = threading.Event()
        try:
            pool = self._pool()
        except Failure as failure:
            raise explained(failure, item.url, "read") from None
        asked = [pool.submit(self._read_one, item, *each, given_up) for each in ranges]
        try:
            return [each.result() for each in asked]
        except BaseException:
            given_up.set()
            for each in asked:
                each.cancel()
            raise

    def _read_one(
        self,
        item: ObjectInfo,
        offset: int,
        length: int,
        given_up: threading.Event | None = None,
    ) -> Buffer:
        if not length:
            return b""  # which HTTP cannot ask for
        bucket, _, key = item.path.partition("/")
        tries, began = Tries(), nan

        def get(client: Client) -> Buffer:
            nonlocal began
            if given_up and given_up.is_set():
                raise Failure(ErrorKind.REFUSED)  # told to nobody
            buffer, began = client.get(key, offset, length)
            if len(buffer) != length:
                raise Failure(ErrorKind.SHORT)
            return buffer

        start, failed = perf_counter(), True
        try:
            buffer = self._ask(bucket, get, tries)
            failed = False
            return buffer
        except Failure as failure:
            if failure.kind in (ErrorKind.SHORT, ErrorKind.SHRUNK):
                raise _cut_short(item, offset, length) from None
            raise explained(failure, item.url, "read") from None
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

    def _ask(self, bucket: str, question: Callable[[Client], T], tries: Tries) -> T:
        """Raises `Failure`."""
        mine = self._of_this_process()
        while True:
            choice = self._choice
            try:
                client = self._client(mine, bucket, choice)
                return retry(partial(question, client), RetryPolicy(mine.account.attempts), tries)
            except Failure as failure:
                with mine.lock:
                    if self._choice is choice:  # else another thread has chosen another client
                        better = _next_choice(choice, failure, mine.account)
                        if better is None:
                            raise
                        self._choice = better

    def _client(self, mine: _Mine, bucket: str, choice: ClientChoice) -> Client:
        with mine.lock:
            if (bucket, choice) not in mine.clients:
                if mine.account.beyond and choice.client != ANYWHERE:
                    raise Failure(ErrorKind.UNSUITED)
                account = replace(mine.account, check_answers=choice.check_answers)
                mine.clients[bucket, choice] = connect(choice.client, bucket, account)
            return mine.clients[bucket, choice]

    def _pool(self) -> ThreadPoolExecutor:
        mine = self._of_this_process()
        with mine.lock:
            if mine.pool is None:
                mine.pool = ThreadPoolExecutor(mine.account.in_flight, "pipeprof-s3")
            return mine.pool

    def _of_this_process(self) -> _Mine:
        pid = os.getpid()
        if pid not in self._mine:
            # of several threads that come here at once, the first to be done counts
            self._mine.setdefault(pid, _Mine(read_account(self._options)))
        return self._mine[pid]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mine": {}}


def _next_choice(choice: ClientChoice, failure: Failure, account: Account) -> ClientChoice | None:
    """To the same store, once ``choice`` has failed; ``None``: there is no better one."""
    if failure.kind is ErrorKind.CHECKSUM and choice.check_answers:
        note = (
            "The store sends checksums that are not those of the ranges asked for; they were not "
            "compared (AWS_RESPONSE_CHECKSUM_VALIDATION=when_required)."
        )
        return replace(choice, check_answers=False, notes=(*choice.notes, note))
    does_not_do = failure.kind in (ErrorKind.UNSUITED, ErrorKind.ABSENT)
    if does_not_do and not choice.chosen and choice.client != ANYWHERE:
        why = "it does not take answers such as this store's"
        if failure.kind is ErrorKind.ABSENT:
            why = "it is not installed, or cannot be loaded"
        elif account.beyond:
            why = f"the setting {account.beyond} is known to {ANYWHERE} alone"
        return replace(
            choice,
            client=ANYWHERE,
            notes=(*choice.notes, f"It was not read by {choice.client}: {why}."),
        )
    return None


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


def _cut_short(item: ObjectInfo, offset: int, length: int) -> StorageError:
    return StorageError(
        f"{item.url} does not give the {length:,} bytes at {offset:,} that it had: it was cut "
        "short or replaced since it was listed."
    )
