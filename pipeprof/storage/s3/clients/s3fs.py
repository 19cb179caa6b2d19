"""S3 by s3fs: botocore's client, in the thread and event loop that fsspec keeps for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeVar

from pipeprof.storage.base import Buffer
from pipeprof.storage.errors import ErrorKind, Failure, raising_failures, understood
from pipeprof.storage.s3.account import Account
from pipeprof.storage.s3.clients.base import Listed
from pipeprof.storage.urls import filesystem

T = TypeVar("T")

_made: dict[str, Any] = {}
"""By process, environment and options: to make one takes botocore a quarter of a second."""


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
            page = self._wait(self._call, "list_objects_v2", Prefix=folder, **more)
            yield [(entry["Key"], entry["Size"]) for entry in page.get("Contents", ())]
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def size(self, key: str) -> int:
        return int(self._wait(self._call, "head_object", Key=key)["ContentLength"])

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        return self._wait(self._get, key, offset, offset + length)

    async def _get(self, key: str, start: int, end: int) -> tuple[bytes, float]:
        answer = await self._call("get_object", Key=key, Range=f"bytes={start}-{end - 1}")
        began = perf_counter()
        whole = answer.get("ContentRange", "").rpartition("/")[2]
        if whole.isdecimal() and int(whole) < end:
            raise Failure(ErrorKind.SHRUNK)
        async with answer["Body"] as body:
            return await body.read(), began

    async def _call(self, method: str, **asked: Any) -> Any:
        """One request of botocore's client."""
        await self._fs.set_session()
        s3 = await self._fs.get_s3(self._bucket)
        return await getattr(s3, method)(Bucket=self._bucket, **asked, **self._pays)

    def _wait(self, ask: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any) -> T:
        from fsspec.asyn import sync

        with raising_failures(understood, "a request by s3fs failed"):
            answer: T = sync(self._fs.loop, ask, *args, **named)
        return answer


def _file_system(options: dict[str, Any]) -> Any:
    settings = sorted(entry for entry in os.environ.items() if entry[0].startswith("AWS_"))
    key = repr((os.getpid(), settings, sorted(options.items())))
    if key not in _made:
        _made[key], _ = filesystem("s3://", options)
    return _made[key]


connect = S3fsBucket
