"""S3 by pyarrow, which has Amazon's client for C++ in it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from math import nan
from typing import Any
from urllib.parse import urlsplit

from pipeprof.storage.base import Buffer
from pipeprof.storage.errors import ErrorKind, Failure, raising_failures, refused
from pipeprof.storage.s3.account import Account
from pipeprof.storage.s3.clients.base import Listed

_OPEN_OBJECTS = 256
_CHECKSUMS = "AWS_RESPONSE_CHECKSUM_VALIDATION"
_BY_CODE = {
    "ACCESS_DENIED": "AccessDenied",
    "INVALID_ACCESS_KEY_ID": "InvalidAccessKeyId",
    "SIGNATURE_DOES_NOT_MATCH": "SignatureDoesNotMatch",
    "NO_SUCH_BUCKET": "NoSuchBucket",
    "NO_SUCH_KEY": "NoSuchKey",
    "RESOURCE_NOT_FOUND": "NoSuchKey",
    "SLOW_DOWN": "SlowDown",
    "THROTTLING": "SlowDown",
    "SERVICE_UNAVAILABLE": "ServiceUnavailable",
    "INTERNAL_FAILURE": "InternalError",
    "REQUEST_TIMEOUT": "RequestTimeout",
    "REQUEST_TIME_TOO_SKEWED": "RequestTimeTooSkewed",
}
"""The names that Amazon's client has for S3's."""
_BY_CURL = {
    "6": ErrorKind.UNREACHED,
    "7": ErrorKind.UNREACHED,
    "28": ErrorKind.TIMEOUT,
    "35": ErrorKind.CERTIFICATE,
    "60": ErrorKind.CERTIFICATE,
    "77": ErrorKind.CERTIFICATE,
}


class PyarrowBucket:
    def __init__(self, bucket: str, account: Account) -> None:
        from pyarrow import fs

        if account.requester_pays:
            raise Failure(ErrorKind.UNSUITED)
        frozen = account.credentials and account.credentials.get_frozen_credentials()
        endpoint = urlsplit(account.endpoint or "")
        with nullcontext() if account.check_answers else _without_checksums():
            self._fs: Any = fs.S3FileSystem(
                access_key=frozen.access_key if frozen else None,
                secret_key=frozen.secret_key if frozen else None,
                session_token=frozen.token if frozen else None,
                anonymous=frozen is None,
                region=account.region,
                endpoint_override=endpoint.netloc or None,
                scheme=endpoint.scheme or "https",
                force_virtual_addressing=not account.path_style,
                tls_ca_file_path=account.ca_file,
                connect_timeout=account.connect_timeout_s,
                request_timeout=account.read_timeout_s,
                retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=0),
            )
        self._bucket = bucket
        # an object's size is asked for when it is opened: not each time
        self._opened = lru_cache(_OPEN_OBJECTS)(self._fs.open_input_file)

    def pages(self, folder: str, after: str) -> Iterator[Sequence[Listed]]:
        """One, as pyarrow gives no part of a listing."""
        from pyarrow import fs

        place = f"{self._bucket}/{folder}".rstrip("/")
        wanted = fs.FileSelector(place, recursive=True, allow_not_found=bool(folder))
        with _understood():
            found = self._fs.get_file_info(wanted)
        start = len(self._bucket) + 1
        yield [(info.path[start:], info.size) for info in found if info.type == fs.FileType.File]

    def size(self, key: str) -> int:
        from pyarrow import fs

        with _understood():
            (info,) = self._fs.get_file_info([f"{self._bucket}/{key}"])
        if info.type != fs.FileType.File:
            raise Failure(ErrorKind.MISSING)
        return int(info.size)

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        with _understood():
            data: bytes = self._opened(f"{self._bucket}/{key}").read_at(length, offset)
        return data, nan


_changing = threading.Lock()


@contextmanager
def _without_checksums() -> Iterator[None]:
    """Amazon's client reads this setting nowhere else, once, when it is created."""
    with _changing:
        before = os.environ.get(_CHECKSUMS)
        os.environ[_CHECKSUMS] = "when_required"
        try:
            yield
        finally:
            del os.environ[_CHECKSUMS]
            if before is not None:
                os.environ[_CHECKSUMS] = before


def _understood() -> AbstractContextManager[None]:
    return raising_failures(_failure, "a request by pyarrow failed")


def _failure(error: Exception) -> Failure:
    """By what Amazon's client says itself; what follows may be the server's words."""
    if isinstance(error, FileNotFoundError):
        return Failure(ErrorKind.MISSING)
    head, _, told = str(error).partition(" operation: ")
    if "past end of file" in head:
        return Failure(ErrorKind.SHRUNK)
    if told.startswith("Response checksums mismatch"):
        return Failure(ErrorKind.CHECKSUM)
    if told.startswith("Failed to flush") or ("UNKNOWN" in head and not told.strip()):
        # the reason was written to where the bytes were to go, and may not have fitted
        return Failure(ErrorKind.UNTOLD)
    if curl := re.match(r"curlCode: (\d+)", told):
        return Failure(_BY_CURL.get(curl[1], ErrorKind.BROKEN_OFF))
    code = re.search(r"AWS Error (\w+)", head)
    known = _BY_CODE.get(code[1], "") if code else ""
    name = re.match(r"Unable to parse ExceptionName: (\w+)", told)
    status = re.search(r"HTTP status (\d{3})", head)
    return refused(known or (name[1] if name else ""), status[1] if status else "")


connect = PyarrowBucket
