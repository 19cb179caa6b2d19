"""S3 by pyarrow, which has Amazon's client for C++ in it."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import nan
from typing import Any
from urllib.parse import urlsplit

from pipeprof.storage.base import Buffer
from pipeprof.storage.errors import ErrorKind, Failure, refused
from pipeprof.storage.s3.account import Account
from pipeprof.storage.s3.clients.base import Listed

_OPEN_OBJECTS = 256
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


def connect(bucket: str, account: Account) -> PyarrowBucket:
    if account.requester_pays:
        raise Failure(ErrorKind.UNSUITED)
    return PyarrowBucket(bucket, account)


class PyarrowBucket:
    def __init__(self, bucket: str, account: Account) -> None:
        from pyarrow import fs

        frozen = account.credentials and account.credentials.get_frozen_credentials()
        endpoint = urlsplit(account.endpoint or "")
        with _environment(
            {} if account.check_answers else {"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required"}
        ):
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
        self._open: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

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
            data: bytes = self._opened(key).read_at(length, offset)
        return data, nan

    def _opened(self, key: str) -> Any:
        """It asks for the size when it is opened: not each time."""
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        opened = self._fs.open_input_file(f"{self._bucket}/{key}")
        with self._lock:
            self._open[key] = opened
            if len(self._open) > _OPEN_OBJECTS:
                self._open.popitem(last=False)
        return opened


_changing = threading.Lock()


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Amazon's client reads some settings nowhere else, once, when it is made."""
    with _changing:
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise Failure(ErrorKind.MISSING) from None
    except OSError as error:
        raise _failure(str(error)) from None


def _failure(text: str) -> Failure:
    """By what Amazon's client says itself; what follows may be the server's words."""
    head, _, told = text.partition(" operation: ")
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
