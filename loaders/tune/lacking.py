"""Tells errors of the machine from those of the data: what another setting may not meet."""

from __future__ import annotations

import errno
import os

_ERRNOS = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOSPC)
_OF_TORCH = {
    "allocate memory": "too little memory",
    "shared memory": "too little shared memory",
    "ancdata": "too few descriptors",
}
"""What torch's messages contain where the machine has too little of something."""


def what_is_lacking(error: Exception) -> str | None:
    """Return what the machine had too little of; ``None`` for an error of another kind.

    torch raises an error of a worker anew, with the message alone, so its number is found there.
    """
    if isinstance(error, MemoryError):
        return "too little memory"
    if isinstance(error, OSError):
        for number in _ERRNOS:
            if error.errno == number or f"[Errno {number}]" in str(error):
                return os.strerror(number)
    if isinstance(error, RuntimeError):
        return next((what for text, what in _OF_TORCH.items() if text in str(error)), None)
    return None
