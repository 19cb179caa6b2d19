"""Read S3 by pyarrow, which contains Amazon's client for C++."""

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
from pipeprof.storage.errors import ErrorKind, Failure, raise_failures, refusal
from pipeprof.storage.s3.account import Account
from pipeprof.storage.s3.clients.base import Listed

_MAX_OPEN_OBJECTS = 256
_CHECKSUMS = "AWS_RESPONSE_CHECKSUM_VALIDATION"
_CODE_BY_NAME = {
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
"""S3's error code for each name that Amazon's client gives it."""
_KIND_BY_CURL_CODE = {
    "6": ErrorKind.UNREACHED,
    "7": ErrorKind.UNREACHED,
    "28": ErrorKind.TIMEOUT,
    "35": ErrorKind.CERTIFICATE,
    "60": ErrorKind.CERTIFICATE,
    "77": ErrorKind.CERTIFICATE,
}


class PyarrowBucket:
    """Implements `Client` by pyarrow."""

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
        # opening an object requests its size, so objects stay open
        self._open = lru_cache(_MAX_OPEN_OBJECTS)(self._fs.open_input_file)

    def pages(self, folder: str, after: str) -> Iterator[Sequence[Listed]]:
        """Yield the whole listing as one page, because pyarrow returns it at once."""
        from pyarrow import fs

        place = f"{self._bucket}/{folder}".rstrip("/")
        selector = fs.FileSelector(place, recursive=True, allow_not_found=bool(folder))
        with _raise_failures():
            infos = self._fs.get_file_info(selector)
        start = len(self._bucket) + 1
        yield [(info.path[start:], info.size) for info in infos if info.type == fs.FileType.File]

    def size(self, key: str) -> int:
        from pyarrow import fs

        with _raise_failures():
            (info,) = self._fs.get_file_info([f"{self._bucket}/{key}"])
        if info.type != fs.FileType.File:
            raise Failure(ErrorKind.MISSING)
        return int(info.size)

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        try:
            with _raise_failures():
                return self._open(f"{self._bucket}/{key}").read_at(length, offset), nan
        except Failure as failure:
            if failure.kind is ErrorKind.UNEXPLAINED:
                self._raise_if_gone(key, offset + length)
            raise

    def _raise_if_gone(self, key: str, end: int) -> None:
        """Say that an object has gone or shrunk since it was opened, by its size of now."""
        try:
            size = self.size(key)
        except Failure as failure:
            if failure.kind is ErrorKind.MISSING:
                raise
            return
        if size < end:
            raise Failure(ErrorKind.SHRUNK)


_environment_lock = threading.Lock()


@contextmanager
def _without_checksums() -> Iterator[None]:
    """Turn checksums off for clients created in the body, by the variable that they read then."""
    with _environment_lock:
        before = os.environ.get(_CHECKSUMS)
        os.environ[_CHECKSUMS] = "when_required"
        try:
            yield
        finally:
            del os.environ[_CHECKSUMS]
            if before is not None:
                os.environ[_CHECKSUMS] = before


def _raise_failures() -> AbstractContextManager[None]:
    return raise_failures(_classify, "a request by pyarrow failed")


def _classify(error: Exception) -> Failure:
    """Classify an error by the words of Amazon's client; other words may be the server's."""
    if isinstance(error, FileNotFoundError):
        return Failure(ErrorKind.MISSING)
    head, _, details = str(error).partition(" operation: ")
    if "past end of file" in head:
        return Failure(ErrorKind.SHRUNK)
    if details.startswith("Response checksums mismatch"):
        return Failure(ErrorKind.CHECKSUM)
    if details.startswith("Failed to flush") or ("UNKNOWN" in head and not details.strip()):
        # the client wrote the reason into the buffer for the bytes, where it may not fit
        return Failure(ErrorKind.UNEXPLAINED)
    if curl := re.match(r"curlCode: (\d+)", details):
        return Failure(_KIND_BY_CURL_CODE.get(curl[1], ErrorKind.BROKEN_OFF))
    code = re.search(r"AWS Error (\w+)", head)
    known = _CODE_BY_NAME.get(code[1], "") if code else ""
    name = re.match(r"Unable to parse ExceptionName: (\w+)", details)
    status = re.search(r"HTTP status (\d{3})", head)
    return refusal(known or (name[1] if name else ""), status[1] if status else "")


connect = PyarrowBucket
