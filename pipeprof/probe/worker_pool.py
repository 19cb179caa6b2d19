"""Run the reads of a probe in this process, or in several others."""

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
from pipeprof.probe.work import Job, JobResult, run_job

_SPAWN = SpawnContext()
_STOP_S = 5.0
"""Seconds in which a process ends by itself, before it is killed."""


class ReaderPool:
    """The processes that read ``target``: this one alone, or new ones with a client each. Close it,
    or use it as a context manager."""

    def __init__(self, target: Target, processes: int = 1) -> None:
        self.target, self.processes = target, 1
        self._members: list[tuple[Connection, SpawnProcess]] = []
        self.startup_s = 0.0
        """Seconds that `grow` has taken in all."""
        self.grow(processes)

    def grow(self, processes: int) -> None:
        """Start processes until there are so many; it never stops any."""
        if processes <= self.processes:
            return
        start = perf_counter()
        try:
            before = len(self._members)
            while len(self._members) < processes:
                self._members.append(_started(self.target))
            for pipe, _ in self._members[before:]:
                _received(pipe)  # wait until it is ready: its start must not slow down a load
        except BaseException:
            self.close(0)
            raise
        self.processes = processes
        self.startup_s += perf_counter() - start

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Run jobs concurrently, each in its own process. Raises `StorageError` when one dies."""
        if not self._members:
            return [run_job(self.target, job) for job in jobs]
        used = self._members[: len(jobs)]
        for (pipe, _), job in zip(used, jobs, strict=True):
            with suppress(OSError):  # it has died, and `_received` raises
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
        self.close(0 if kind else _STOP_S)  # after an error they may have much left to read


def _started(target: Target) -> tuple[Connection, SpawnProcess]:
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_member, args=(theirs, target), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _member(pipe: Connection, target: Target) -> None:
    """Run the jobs that come through the pipe, in a process of its own, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent closes the pipe
    with suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            pipe.send(run_job(target, pipe.recv()))


def _received(pipe: Connection) -> JobResult:
    try:
        result: JobResult = pipe.recv()
    except (EOFError, OSError):
        raise StorageError("A process that read for the probe ended; it may lack memory.") from None
    return result
