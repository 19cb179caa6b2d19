"""Errors of remote clients, told without their text: that may quote the request, and so the
credentials."""

from __future__ import annotations

import os

_UNREACHED = "the server cannot be reached; check the endpoint and the network"
_BROKEN_OFF = "the server broke off its answer; it may be overloaded, or may not read the object"
_NO_CREDENTIALS = (
    "no credentials found; set them in the environment or in the profile of your cloud's tools, "
    "or say that access is anonymous"
)
_BY_KIND = {
    "NoCredentialsError": _NO_CREDENTIALS,
    "PartialCredentialsError": _NO_CREDENTIALS,
    "EndpointConnectionError": _UNREACHED,
    "ConnectTimeoutError": _UNREACHED,
    "ProxyConnectionError": _UNREACHED,
    "SSLError": "no encrypted connection; check the certificate, and that the endpoint has https",
    "ReadTimeoutError": "the server took too long to answer",
    "ConnectionClosedError": _BROKEN_OFF,
    "ClientPayloadError": _BROKEN_OFF,
    "FlexibleChecksumError": (
        "its checksum is not that of the bytes received; some servers send it for the whole "
        "object, then set AWS_RESPONSE_CHECKSUM_VALIDATION=when_required"
    ),
}
"""What clients of several clouds name their errors, and what it means."""


def reason(error: Exception) -> str:
    """Why, in a few words: only the error's kind, a server's code for it, and for the operating
    system's errors its own words, are kept."""
    if isinstance(error, FileNotFoundError):
        return "no such object, folder or bucket"
    if isinstance(error, PermissionError):
        return "access denied; check the credentials"
    kind = type(error).__name__
    if kind in _BY_KIND:
        return _BY_KIND[kind]
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
