"""Classify the errors of storage clients, and explain them to the user.

A client's own text may quote the request, and so the credentials. Only the kind of an error, the
server's short code for it and the operating system's words are kept.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

from pipeprof.errors import NothingFound, StorageError
from pipeprof.log import log_caught

_log = logging.getLogger(__name__)


class ErrorKind(Enum):
    """What went wrong in a storage; the value is the explanation that a user reads."""

    MISSING = "no such object, folder or bucket"
    DENIED = "access denied; check the credentials"
    NO_CREDENTIALS = (
        "no credentials found; set them in the environment or in the profile of your cloud's "
        "tools, or say that access is anonymous"
    )
    NO_PROFILE = "there is no such profile in the configuration of AWS; check AWS_PROFILE"
    REGION = "the bucket is in another region; set AWS_REGION to it"
    CLOCK = "the server's clock is not this machine's; set the clock"
    UNREACHED = "the server cannot be reached; check the endpoint and the network"
    CERTIFICATE = (
        "no encrypted connection; check the certificate, and that the endpoint has https; a "
        "certificate authority of your own is named by AWS_CA_BUNDLE"
    )
    TIMEOUT = "the server took too long to answer"
    BROKEN_OFF = "the server broke off its answer; it may be overloaded, or may not read the object"
    SHORT = "the server sent less than it was asked for"
    SHRUNK = "the object is shorter than when it was listed"
    THROTTLED = "the server asks to slow down; read with fewer workers"
    SERVER = "the server failed"
    REFUSED = "the server refuses the request"
    UNEXPLAINED = "the server refuses the request; another --s3-client shows the reason"
    CHECKSUM = (
        "its checksum is not that of the bytes received; if the server sends the checksum of the "
        "whole object, set AWS_RESPONSE_CHECKSUM_VALIDATION=when_required"
    )
    ABSENT = "this client is not installed, or cannot be loaded; omit --s3-client"
    UNSUITED = "this client does not read from this store; omit --s3-client"
    SYSTEM = "the system reports an error"

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed when it is repeated."""
        return self in _TRANSIENT


_TRANSIENT = frozenset(
    (
        ErrorKind.UNREACHED,
        ErrorKind.TIMEOUT,
        ErrorKind.BROKEN_OFF,
        ErrorKind.SHORT,
        ErrorKind.THROTTLED,
        ErrorKind.SERVER,
        ErrorKind.UNEXPLAINED,
    )
)


class Failure(Exception):
    """An error of a storage client, reduced to its kind and a detail without secrets."""

    def __init__(self, kind: ErrorKind, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail
        """The server's code, the operating system's words, or the type of an unknown error."""

    @property
    def reason(self) -> str:
        """The explanation for the user, with the detail where the kind alone says little."""
        shown = self.detail and self.kind in _VAGUE
        return f"{self.kind.value} ({self.detail})" if shown else self.kind.value


_VAGUE = (ErrorKind.SERVER, ErrorKind.REFUSED, ErrorKind.SYSTEM)
_KIND_BY_CODE = {
    **dict.fromkeys(("NoSuchKey", "NoSuchBucket", "404"), ErrorKind.MISSING),
    **dict.fromkeys(
        ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken",
         "InvalidToken", "TokenRefreshRequired", "AccountProblem", "401", "403"),
        ErrorKind.DENIED,
    ),
    **dict.fromkeys(
        ("SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded",
         "TooManyRequests", "ServiceUnavailable", "429", "503"),
        ErrorKind.THROTTLED,
    ),
    **dict.fromkeys(
        ("InternalError", "RequestTimeout", "500", "502", "504"), ErrorKind.SERVER
    ),
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException",
         "301", "307"),
        ErrorKind.REGION,
    ),
    **dict.fromkeys(("InvalidRange", "416"), ErrorKind.SHRUNK),
    "RequestTimeTooSkewed": ErrorKind.CLOCK,
}  # fmt: skip
"""Error codes and HTTP status codes in answers of S3."""


def refusal(code: str, status: str = "") -> Failure:
    """Classify a refused request by the server's error code, or else by the HTTP status code."""
    kind = _KIND_BY_CODE.get(code) or _KIND_BY_CODE.get(status) or ErrorKind.REFUSED
    return Failure(kind, code if code.isalnum() and len(code) <= 40 else "")


_KIND_BY_EXCEPTION = {
    "FileNotFoundError": ErrorKind.MISSING,
    "PermissionError": ErrorKind.DENIED,
    "NoCredentialsError": ErrorKind.NO_CREDENTIALS,
    "PartialCredentialsError": ErrorKind.NO_CREDENTIALS,
    "ProfileNotFound": ErrorKind.NO_PROFILE,
    "EndpointConnectionError": ErrorKind.UNREACHED,
    "ConnectTimeoutError": ErrorKind.UNREACHED,
    "ProxyConnectionError": ErrorKind.UNREACHED,
    "SSLError": ErrorKind.CERTIFICATE,
    "ClientConnectorError": ErrorKind.UNREACHED,
    "ReadTimeoutError": ErrorKind.TIMEOUT,
    "FSTimeoutError": ErrorKind.TIMEOUT,
    "TimeoutError": ErrorKind.TIMEOUT,
    "SocketTimeoutError": ErrorKind.TIMEOUT,
    "ConnectionClosedError": ErrorKind.BROKEN_OFF,
    "ClientPayloadError": ErrorKind.BROKEN_OFF,
    "ResponseStreamingError": ErrorKind.BROKEN_OFF,
    "IncompleteReadError": ErrorKind.BROKEN_OFF,
    "ClientOSError": ErrorKind.BROKEN_OFF,
    "ConnectionResetError": ErrorKind.BROKEN_OFF,
    "ResponseParserError": ErrorKind.BROKEN_OFF,
    "FlexibleChecksumError": ErrorKind.CHECKSUM,
}
"""Names of exception classes, as the clients of several clouds raise them."""


def classify(error: Exception) -> Failure:
    """Classify an error of botocore, aiohttp, fsspec or the operating system."""
    for cls in type(error).__mro__:
        if cls.__name__ in _KIND_BY_EXCEPTION:
            return Failure(_KIND_BY_EXCEPTION[cls.__name__])
    cause: BaseException | None = error
    while cause is not None:  # fsspec raises errors of its own from those of the client
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
            return refusal(str(response.get("Error", {}).get("Code", "")), str(status))
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, OSError) and error.errno:
        return Failure(ErrorKind.SYSTEM, os.strerror(error.errno))
    return Failure(ErrorKind.REFUSED, type(error).__name__)


@contextmanager
def raise_failures(classify: Callable[[Exception], Failure], missing: str) -> Iterator[None]:
    """Raise every error of the body as a `Failure`, and log ``missing``: what it prevented."""
    try:
        yield
    except Failure:
        raise
    except Exception as error:
        log_caught(_log, error, missing)
        raise classify(error) from None


def storage_error(failure: Failure, url: str, done: str) -> StorageError:
    """Return the error that says why ``url`` cannot be ``done``, for example "read". ``url`` must
    hold no secret. A missing object is a `NothingFound`."""
    error = NothingFound if failure.kind is ErrorKind.MISSING else StorageError
    return error(f"{url} cannot be {done}: {failure.reason}.")


def shrunk_error(url: str, offset: int, length: int) -> StorageError:
    """Return the error of an object that no longer has the ``length`` bytes at ``offset``."""
    return StorageError(
        f"{url} does not give the {length:,} bytes at {offset:,} that it had: it was cut short or "
        "replaced since it was listed."
    )
