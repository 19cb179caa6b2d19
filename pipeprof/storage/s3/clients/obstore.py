"""Read S3 by obstore, a library in Rust whose threads do not need Python's global lock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from pipeprof.storage.base import Buffer
from pipeprof.storage.errors import ErrorKind, Failure, raise_failures, refusal
from pipeprof.storage.s3.account import Account, region_of
from pipeprof.storage.s3.clients.base import Listed
from pipeprof.storage.s3.obstore_after_fork import obstore_of_this_process

_PAGE_OBJECTS = 1000
_NO_LIMIT = timedelta(days=1)
_CREDENTIALS_LAST = timedelta(minutes=5)
"""How long obstore keeps credentials that expire; botocore renews them ten minutes before."""
_KIND_BY_NAME = {"Connect": ErrorKind.UNREACHED, "Timeout": ErrorKind.TIMEOUT}


class ObstoreBucket:
    """Implements `Client` by obstore."""

    def __init__(self, bucket: str, account: Account) -> None:
        self._obstore = obstore_of_this_process()
        virtual = not account.path_style and "." not in bucket
        config: dict[str, Any] = {
            "region": region_of(bucket, account),
            "virtual_hosted_style_request": virtual,
            "skip_signature": account.credentials is None,
            "request_payer": account.requester_pays,
        }
        if account.endpoint:
            # this name takes precedence over the variables of the environment
            config["aws_endpoint_url_s3"] = _endpoint(account.endpoint, bucket if virtual else "")
        client: dict[str, Any] = {
            "allow_http": True,
            "allow_invalid_certificates": not account.verify,
            "connect_timeout": timedelta(seconds=account.connect_timeout_s),
            "read_timeout": timedelta(seconds=account.read_timeout_s),
            "timeout": _NO_LIMIT,
        }
        with _raise_failures():
            if account.ca_file:
                client["root_certificate"] = Path(account.ca_file).read_bytes()
            self._store = self._obstore.store.S3Store(
                bucket,
                config=config,
                client_options=client,
                retry_config={"max_retries": 0},
                credential_provider=_provider(account.credentials) if account.credentials else None,
            )

    def pages(self, folder: str, after: str) -> Iterator[Sequence[Listed]]:
        with _raise_failures():
            for page in self._obstore.list(
                self._store, folder, offset=after or None, chunk_size=_PAGE_OBJECTS
            ):
                yield [(entry["path"], entry["size"]) for entry in page]

    def size(self, key: str) -> int:
        with _raise_failures():
            return int(self._obstore.head(self._store, key)["size"])

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        options = {"range": (offset, offset + length)}
        with _raise_failures():
            answer = self._obstore.get(self._store, key, options=options)
            began = perf_counter()
            if answer.meta["size"] < offset + length:
                raise Failure(ErrorKind.SHRUNK)
            return memoryview(answer.bytes()), began


def _endpoint(url: str, bucket: str) -> str:
    parts = urlsplit(url)
    host = f"{bucket}.{parts.netloc}" if bucket else parts.netloc
    return parts._replace(netloc=host).geturl().rstrip("/")


def _provider(credentials: Any) -> Any:
    """Return a function that gives obstore the current credentials of botocore."""
    expires = hasattr(credentials, "refresh_needed")

    def provide() -> dict[str, Any]:
        frozen = credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(timezone.utc) + _CREDENTIALS_LAST if expires else None,
        }

    return provide


def _raise_failures() -> AbstractContextManager[None]:
    return raise_failures(_classify, "a request by obstore failed")


def _classify(error: Exception) -> Failure:
    if isinstance(error, FileNotFoundError):
        return Failure(ErrorKind.MISSING)
    text = str(error)
    code = re.search(r"<Code>(\w{1,40})</Code>", text)
    status = re.search(r"status code: (\d{3})", text)
    if code or status:
        return refusal(code[1] if code else "", status[1] if status else "")
    if "NotPartial" in text or "InvalidPath" in text:
        return Failure(ErrorKind.UNSUITED)
    if "InvalidCertificate" in text or "InvalidMessage" in text:
        return Failure(ErrorKind.CERTIFICATE)
    kind = re.search(r"kind: (Connect|Timeout)\b", text)
    return Failure(_KIND_BY_NAME[kind[1]] if kind else ErrorKind.BROKEN_OFF)


connect = ObstoreBucket
