"""Errors of remote clients, told without their text: that may quote the request, and so the
credentials."""

from __future__ import annotations

import os


def reason(error: Exception) -> str:
    """Why, in a few words: only the error's kind, and for the operating system's errors its own
    words, are kept."""
    if isinstance(error, FileNotFoundError):
        return "no such object, folder or bucket"
    if isinstance(error, PermissionError):
        return "access denied; check the credentials"
    name = type(error).__name__
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        return (
            "no credentials found; set them in the environment or in the profile of your cloud's "
            "tools, or say that access is anonymous"
        )
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else name
