"""Errors of remote clients, told without their text: that may quote the request, and so the
credentials."""

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
    """What may go wrong with a store, in the words that a user reads."""

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
    UNTOLD = "the server refuses the request; another --s3-client tells why"
    CHECKSUM = (
        "its checksum is not that of the bytes received; some servers send it for the whole "
        "object, then set AWS_RESPONSE_CHECKSUM_VALIDATION=when_required"
    )
    ABSENT = "this client is not installed, or cannot be loaded; omit --s3-client"
    UNSUITED = "this client does not read from this store; omit --s3-client"

    @property
    def may_pass(self) -> bool:
        """Whether asking again may help."""
        return self in _PASSING


_PASSING = frozenset(
    (
        ErrorKind.UNREACHED,
        ErrorKind.TIMEOUT,
        ErrorKind.BROKEN_OFF,
        ErrorKind.SHORT,
        ErrorKind.THROTTLED,
        ErrorKind.SERVER,
        ErrorKind.UNTOLD,
    )
)


class Failure(Exception):
    """A client's error, understood."""

    def __init__(self, kind: ErrorKind, code: str = "") -> None:
        super().__init__(kind, code)
        self.kind = kind
        self.code = code if code.isalnum() and len(code) <= 40 else ""
        """What the server calls it, such as ``SlowDown``."""


_BY_CODE = {
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
"""Codes and states of S3's answers."""


def refused(code: str, status: str = "") -> Failure:
    """An answer that is none: by its code, which tells more, else by its HTTP state."""
    return Failure(_BY_CODE.get(code) or _BY_CODE.get(status) or ErrorKind.REFUSED, code)


_BY_KIND = {
    "NoCredentialsError": ErrorKind.NO_CREDENTIALS,
    "PartialCredentialsError": ErrorKind.NO_CREDENTIALS,
    "ProfileNotFound": ErrorKind.NO_PROFILE,
    "EndpointConnectionError": ErrorKind.UNREACHED,
    "ConnectTimeoutError": ErrorKind.UNREACHED,
    "ProxyConnectionError": ErrorKind.UNREACHED,
    "SSLError": ErrorKind.CERTIFICATE,
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
"""What clients of several clouds name their errors."""


def understood(error: Exception) -> Failure:
    """An error of botocore or aiohttp."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
        return refused(str(response.get("Error", {}).get("Code", "")), str(status))
    for kind in type(error).__mro__:
        if kind.__name__ in _BY_KIND:
            return Failure(_BY_KIND[kind.__name__])
    return Failure(ErrorKind.REFUSED, type(error).__name__)


@contextmanager
def raising_failures(understand: Callable[[Exception], Failure], missing: str) -> Iterator[None]:
    """Raise every error of the body as a `Failure`, and log what is ``missing`` for it."""
    try:
        yield
    except Failure:
        raise
    except Exception as error:
        log_caught(_log, error, missing)
        raise understand(error) from None


def explained(failure: Failure, url: str, what: str) -> StorageError:
    """For the user: ``url``, which holds no secret, cannot be ``what``."""
    raised = NothingFound if failure.kind is ErrorKind.MISSING else StorageError
    code = failure.code if failure.kind in (ErrorKind.SERVER, ErrorKind.REFUSED) else ""
    return raised(f"{url} cannot be {what}: {failure.kind.value}{f' ({code})' if code else ''}.")


def reason(error: Exception) -> str:
    """Why, in a few words: only the error's kind, a server's code for it, and for the operating
    system's errors its own words, are kept."""
    if isinstance(error, FileNotFoundError):
        return ErrorKind.MISSING.value
    if isinstance(error, PermissionError):
        return ErrorKind.DENIED.value
    kind = type(error).__name__
    if kind in _BY_KIND:
        return _BY_KIND[kind].value
    why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else kind
    code = _code(error)
    return f"{why} ({code})" if code else why


def _code(error: BaseException | None) -> str | None:
    """What a server of S3 called it, such as ``SlowDown``; fsspec keeps this beneath its own."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            code = str(response.get("Error", {}).get("Code", ""))
            return code if code.isalnum() and len(code) <= 40 else None
        error = error.__cause__ or error.__context__
    return None
