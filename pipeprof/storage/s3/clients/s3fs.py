"""Read S3 by s3fs: a client of botocore in the thread and event loop of fsspec."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeVar

from pipeprof.storage.base import Buffer
from pipeprof.storage.errors import ErrorKind, Failure, classify, raise_failures
from pipeprof.storage.s3.account import Account
from pipeprof.storage.s3.clients.base import Listed
from pipeprof.storage.urls import filesystem

T = TypeVar("T")

_file_systems: dict[str, Any] = {}
"""File systems by process, environment and options; to create one takes 0.25 s."""


class S3fsBucket:
    """Implements `Client` by the client of botocore that s3fs creates, without s3fs's retries."""

    def __init__(self, bucket: str, account: Account) -> None:
        options = dict(account.options)
        config = {
            "connect_timeout": account.connect_timeout_s,
            "read_timeout": account.read_timeout_s,
            "max_pool_connections": max(10, account.max_concurrency),
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

    async def _call(self, method: str, **parameters: Any) -> Any:
        """Send one request by botocore's client."""
        await self._fs.set_session()
        s3 = await self._fs.get_s3(self._bucket)
        return await getattr(s3, method)(Bucket=self._bucket, **parameters, **self._pays)

    def _wait(self, send: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any) -> T:
        from fsspec.asyn import sync

        with raise_failures(classify, "a request by s3fs failed"):
            answer: T = sync(self._fs.loop, send, *args, **named)
        return answer


def _file_system(options: dict[str, Any]) -> Any:
    settings = sorted(entry for entry in os.environ.items() if entry[0].startswith("AWS_"))
    key = repr((os.getpid(), settings, sorted(options.items())))
    if key not in _file_systems:
        _file_systems[key], _ = filesystem("s3://", options)
    return _file_systems[key]


connect = S3fsBucket
