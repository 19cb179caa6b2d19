"""S3 by s3fs: botocore's client, in the thread and event loop that fsspec keeps for it."""

from __future__ import annotations

import logging
import os
from collections.abc import Coroutine, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeVar

from pipeprof.log import log_caught
from pipeprof.storage.base import Buffer
from pipeprof.storage.errors import ErrorKind, Failure, understood
from pipeprof.storage.s3.account import Account
from pipeprof.storage.s3.clients.base import Listed
from pipeprof.storage.urls import filesystem

_log = logging.getLogger(__name__)

T = TypeVar("T")

_made: dict[str, Any] = {}
"""By process, environment and options: to make one takes botocore a quarter of a second."""


def connect(bucket: str, account: Account) -> S3fsBucket:
    return S3fsBucket(bucket, account)


class S3fsBucket:
    """Of s3fs it takes how a client is made, and asks that client itself: s3fs would ask again."""

    def __init__(self, bucket: str, account: Account) -> None:
        options = dict(account.options)
        config = {
            "connect_timeout": account.connect_timeout_s,
            "read_timeout": account.read_timeout_s,
            "max_pool_connections": max(10, account.in_flight),
            **(options.get("config_kwargs") or {}),
            "retries": {"total_max_attempts": 1, "mode": "standard"},
        }
        if not account.check_answers:
            config["response_checksum_validation"] = "when_required"
        options |= {"config_kwargs": config, "skip_instance_cache": True}
        self._fs = _file_system(options)
        self._bucket = bucket
        self._pays = {"RequestPayer": "requester"} if account.requester_pays else {}

    def pages(self, folder: str, after: str) -> Iterator[Sequence[Listed]]:
        more: dict[str, Any] = {"StartAfter": after} if after else {}
        while True:
            page = self._wait(self._page(folder, more))
            yield [(entry["Key"], entry["Size"]) for entry in page.get("Contents", ())]
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    async def _page(self, folder: str, more: dict[str, Any]) -> Any:
        s3 = await self._s3()
        return await s3.list_objects_v2(Bucket=self._bucket, Prefix=folder, **more, **self._pays)

    def size(self, key: str) -> int:
        return int(self._wait(self._head(key))["ContentLength"])

    async def _head(self, key: str) -> Any:
        s3 = await self._s3()
        return await s3.head_object(Bucket=self._bucket, Key=key, **self._pays)

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        return self._wait(self._get(key, offset, offset + length))

    async def _get(self, key: str, start: int, end: int) -> tuple[bytes, float]:
        s3 = await self._s3()
        asked = f"bytes={start}-{end - 1}"
        answer = await s3.get_object(Bucket=self._bucket, Key=key, Range=asked, **self._pays)
        began = perf_counter()
        whole = answer.get("ContentRange", "").rpartition("/")[2]
        if whole.isdecimal() and int(whole) < end:
            raise Failure(ErrorKind.SHRUNK)
        async with answer["Body"] as body:
            return await body.read(), began

    async def _s3(self) -> Any:
        await self._fs.set_session()
        return await self._fs.get_s3(self._bucket)

    def _wait(self, asking: Coroutine[Any, Any, T]) -> T:
        from fsspec.asyn import sync

        async def asked() -> T:
            return await asking

        try:
            found: T = sync(self._fs.loop, asked)
        except Failure:
            raise
        except Exception as error:
            log_caught(_log, error, "a request by s3fs failed")
            raise understood(error) from None
        return found


def _file_system(options: dict[str, Any]) -> Any:
    settings = sorted(entry for entry in os.environ.items() if entry[0].startswith("AWS_"))
    key = repr((os.getpid(), settings, sorted(options.items())))
    if key not in _made:
        _made[key], _ = filesystem("s3://", options)
    return _made[key]
