"""Finds candidates in a process of its own, while training continues.

A thread of the training process would hold its interpreter for as long as it computes, which delays
each batch. A process with a low priority takes a core that is idle, or a tenth of a busy one. It
needs about a second: workers should not miss that at once, nor should it take a whole epoch.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import weakref
from collections.abc import Sequence
from tempfile import TemporaryFile
from typing import IO

from pipeprof.loaders.tune.candidates import Bounds, propose
from pipeprof.loaders.tune.search import Candidate
from pipeprof.model import Recording, TunedSetting

_NICENESS = 10
_START = (
    # Ctrl-C does not reach another process group. Another session would, too, be a group of its own
    # for the scheduler, which shares a core between such groups whatever their priorities
    f"import os; os.setpgid(0, 0); os.nice({_NICENESS}); "
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    f"from {__name__} import main; main()"
)


class ProposalProcess:
    """Runs `propose`; its result is asked for by calling this."""

    def __init__(self, recording: Recording, own: TunedSetting, bounds: Bounds) -> None:
        self._results = TemporaryFile()  # noqa: SIM115 (read when the process has ended)
        with TemporaryFile() as task:
            pickle.dump(sys.path, task)
            pickle.dump((recording, own, bounds), task)
            task.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=task, stdout=self._results, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        self._end = weakref.finalize(self, _end, self._process, self._results)

    def __call__(self) -> Sequence[Candidate] | None:
        """Return what was found; ``None`` until then.

        Raises:
            ChildProcessError: The process failed.
        """
        code = self._process.poll()
        if code is None:
            return None
        if code:
            raise ChildProcessError(f"the process that finds candidates ended with {code}")
        self._results.seek(0)
        found: Sequence[Candidate] = pickle.load(self._results)
        self._end()
        return found


def main() -> None:
    """Read a task from stdin, and write its result to stdout."""
    recording, own, bounds = pickle.load(sys.stdin.buffer)
    pickle.dump(propose(recording, own, bounds), sys.stdout.buffer)


def _end(process: subprocess.Popen[bytes], results: IO[bytes]) -> None:
    process.kill()
    process.wait()
    results.close()
