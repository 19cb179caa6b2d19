"""S3 by obstore: the object_store of Rust, whose threads know nothing of Python's lock."""

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
from pipeprof.storage.errors import ErrorKind, Failure, raising_failures, refused
from pipeprof.storage.s3.account import Account, region_of
from pipeprof.storage.s3.clients.base import Listed
from pipeprof.storage.s3.obstore_after_fork import obstore_of_this_process

_PAGE = 1000
_NO_LIMIT = timedelta(days=1)
_LASTS = timedelta(minutes=5)
"""How long credentials that expire are kept: botocore renews them ten minutes before."""
_BY_KIND = {"Connect": ErrorKind.UNREACHED, "Timeout": ErrorKind.TIMEOUT}


class ObstoreBucket:
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
            # this name has precedence over the environment, in which the other may stand
            config["aws_endpoint_url_s3"] = _endpoint(account.endpoint, bucket if virtual else "")
        client: dict[str, Any] = {
            "allow_http": True,
            "allow_invalid_certificates": not account.verify,
            "connect_timeout": timedelta(seconds=account.connect_timeout_s),
            "read_timeout": timedelta(seconds=account.read_timeout_s),
            "timeout": _NO_LIMIT,
        }
        with _understood():
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
        with _understood():
            found = self._obstore.list(self._store, folder, offset=after or None, chunk_size=_PAGE)
            for page in found:
                yield [(entry["path"], entry["size"]) for entry in page]

    def size(self, key: str) -> int:
        with _understood():
            return int(self._obstore.head(self._store, key)["size"])

    def get(self, key: str, offset: int, length: int) -> tuple[Buffer, float]:
        asked = {"range": (offset, offset + length)}
        with _understood():
            answer = self._obstore.get(self._store, key, options=asked)
            began = perf_counter()
            if answer.meta["size"] < offset + length:
                raise Failure(ErrorKind.SHRUNK)
            return memoryview(answer.bytes()), began


def _endpoint(url: str, bucket: str) -> str:
    parts = urlsplit(url)
    host = f"{bucket}.{parts.netloc}" if bucket else parts.netloc
    return parts._replace(netloc=host).geturl().rstrip("/")


def _provider(credentials: Any) -> Any:
    """botocore's credentials, asked for again when they may have changed."""
    expires = hasattr(credentials, "refresh_needed")

    def provide() -> dict[str, Any]:
        frozen = credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(timezone.utc) + _LASTS if expires else None,
        }

    return provide


def _understood() -> AbstractContextManager[None]:
    return raising_failures(_failure, "a request by obstore failed")


def _failure(error: Exception) -> Failure:
    if isinstance(error, FileNotFoundError):
        return Failure(ErrorKind.MISSING)
    text = str(error)
    code = re.search(r"<Code>(\w{1,40})</Code>", text)
    status = re.search(r"status code: (\d{3})", text)
    if code or status:
        return refused(code[1] if code else "", status[1] if status else "")
    if "NotPartial" in text or "InvalidPath" in text:
        return Failure(ErrorKind.UNSUITED)
    if "InvalidCertificate" in text or "InvalidMessage" in text:
        return Failure(ErrorKind.CERTIFICATE)
    kind = re.search(r"kind: (Connect|Timeout)\b", text)
    return Failure(_BY_KIND[kind[1]] if kind else ErrorKind.BROKEN_OFF)


connect = ObstoreBucket
