"""Show each warning of the user's code once, although a sweep runs that code in every trial."""

from __future__ import annotations

import fcntl
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from tempfile import TemporaryFile
from typing import Any

_DIGEST_BYTES = 16


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Show each warning in the body once, over this process and the workers that it forks. Workers
    started by spawn or forkserver show their own warnings again."""
    with TemporaryFile() as file, warnings.catch_warnings():
        shown, show = _ShownWarnings(file.fileno()), warnings.showwarning

        def show_first(
            message: Any, category: Any, filename: str, lineno: int, *to: Any, **named: Any
        ) -> None:
            key = f"{filename}:{lineno}:{category.__qualname__}:{message}"
            if shown.add(key):
                show(message, category, filename, lineno, *to, **named)

        warnings.showwarning = show_first
        yield


class _ShownWarnings:
    """A set of warnings, kept as digests in a file that forked workers have open too."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._known: set[bytes] = set()
        """The digests that this process has read or written."""

    def add(self, key: str) -> bool:
        """Add a warning, and return whether it is new to all processes. It counts as new where the
        file cannot be read or written."""
        digest = blake2b(key.encode(errors="replace"), digest_size=_DIGEST_BYTES).digest()
        if digest in self._known:
            return False
        with suppress(OSError):
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
            try:
                size = os.fstat(self._descriptor).st_size
                digests = os.pread(self._descriptor, size, 0)
                starts = range(0, size, _DIGEST_BYTES)
                self._known = {digests[at : at + _DIGEST_BYTES] for at in starts}
                if digest in self._known:
                    return False
                os.pwrite(self._descriptor, digest, size)
                self._known.add(digest)
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
        return True
