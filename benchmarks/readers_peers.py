"""The readers of each format, and the virtual environments of the other libraries.

These are created once, below ``.bench-peers/``, so that pipeprof gains no dependency.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_PLACE = _HERE.parent / ".bench-peers"
_PATIENCE_S = 600
_PACKAGES = {
    "polars": ("polars==2.1.0", f"pyarrow=={version('pyarrow')}", "numpy"),
    "tfrecord": ("tfrecord==1.14.6",),
    "tf.data": ("tensorflow-cpu==2.21.0",),
}


@dataclass(frozen=True)
class Reader:
    name: str
    """The name in `benchmarks.readers_arms.READERS`."""
    threads: int = 1
    again: bool = False
    """Whether it is the same reader a second time, as the control."""

    def __str__(self) -> str:
        return f"{self.name} again" if self.again else self.name


OURS, AGAIN = Reader("pipeprof"), Reader("pipeprof", again=True)
PEERS = {
    "csv": (Reader("pyarrow stream"), Reader("polars"), Reader("polars", 2)),
    "parquet": (
        Reader("pyarrow row groups"),
        Reader("pyarrow dataset"),
        Reader("polars"),
        Reader("polars", 2),
    ),
    "tfrecord": (Reader("tf.data"), Reader("tf.data", 2), Reader("tfrecord")),
}


@cache
def python_of(name: str) -> str:
    """Return the interpreter that has the library. Raises OSError or `subprocess.SubprocessError`
    when it cannot be installed."""
    packages = _PACKAGES.get(name)
    if packages is None:
        return sys.executable
    place = _PLACE / f"readers-{name}"
    python, ready = place / "bin" / "python", place / "ready"
    if not ready.exists() or ready.read_text() != " ".join(packages):
        print(f"installing {' '.join(packages)} into {place}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "--retries=1", *packages],
            check=True,
            timeout=_PATIENCE_S,
            stderr=subprocess.DEVNULL,
        )
        ready.write_text(" ".join(packages))
    return str(python)


class Process:
    """A reader in a process of its own, which reads on request."""

    def __init__(self, reader: Reader) -> None:
        self._name = str(reader)
        self._process = subprocess.Popen(
            [
                python_of(reader.name),
                str(_HERE / "readers_process.py"),
                reader.name,
                str(reader.threads),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, **job: Any) -> dict[str, Any]:
        """Return the answer to a request. Raises RuntimeError with the reader's message."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError("its process has ended") from None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("its process has ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()
