"""The processes that read: this one, or several others."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from time import perf_counter
from types import TracebackType

from pipeprof.errors import StorageError
from pipeprof.probe.target import Target
from pipeprof.probe.work import Job, Work, work

_SPAWN = SpawnContext()
_STOP_S = 5.0
"""For a process to end when told to."""


class ReaderPool:
    """Reads ``target``. One process is this one; of more, each is a new one with a client of its
    own. To be closed, or used as a context manager."""

    def __init__(self, target: Target, processes: int = 1) -> None:
        self.target, self.processes = target, 1
        self._members: list[tuple[Connection, SpawnProcess]] = []
        self.startup_s = 0.0
        """Taken by `grow` in all."""
        self.grow(processes)

    def grow(self, processes: int) -> None:
        """To so many, if they are more than there are."""
        if processes <= self.processes:
            return
        start = perf_counter()
        try:
            before = len(self._members)
            while len(self._members) < processes:
                self._members.append(_started(self.target))
            for pipe, _ in self._members[before:]:
                _received(pipe)  # it is ready: what it takes to start is in no load
        except BaseException:
            self.close(0)
            raise
        self.processes = processes
        self.startup_s += perf_counter() - start

    def run(self, jobs: Sequence[Job]) -> list[Work]:
        """Side by side, each in a process of its own. Raises `StorageError` when one is lost."""
        if not self._members:
            return [work(self.target, job) for job in jobs]
        used = self._members[: len(jobs)]
        for (pipe, _), job in zip(used, jobs, strict=True):
            with suppress(OSError):  # it is gone; receiving tells
                pipe.send(job)
        return [_received(pipe) for pipe, _ in used]

    def close(self, timeout_s: float = _STOP_S) -> None:
        for pipe, _ in self._members:
            pipe.close()
        while self._members:
            _, process = self._members.pop()
            process.join(timeout_s)
            process.kill()
            process.join()
            process.close()

    def __enter__(self) -> ReaderPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(0 if kind else _STOP_S)  # they may have much to read still


def _started(target: Target) -> tuple[Connection, SpawnProcess]:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_member, args=(theirs, target), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _member(pipe: Connection, target: Target) -> None:
    """In a process of its own: jobs come, work goes, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent closes the pipe
    with suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            pipe.send(work(target, pipe.recv()))


def _received(pipe: Connection) -> Work:
    try:
        found: Work = pipe.recv()
    except (EOFError, OSError):
        raise StorageError("A process that read for the probe ended; it may lack memory.") from None
    return found
