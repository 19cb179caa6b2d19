"""Runs inputs in a forked process, whose crash, hang or hunger for memory is an outcome too."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from pipeprof.errors import PipeprofError

CPU_S = 2.0
"""Of one input: beyond, it hangs."""
WALL_S = 60
"""Of one input, however busy the machine: beyond, it waits for something."""
MEMORY_BYTES = 500 * 2**20
"""That one input may add to the process."""
_ADDRESS_BYTES = 4 * 2**30
"""That it may ask for: beyond, an allocation fails, and the machine is spared."""


@dataclass(frozen=True)
class Outcome:
    """What became of one input."""

    kind: str
    """``read``, the name of a `PipeprofError`, or one of `FAULTS`."""
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        return self.kind in FAULTS


FAULTS = ("exception", "crash", "hang", "memory")


def run_caged(check: Callable[[bytes], object], inputs: Sequence[bytes]) -> list[Outcome]:
    """The outcomes of the first inputs: all of them, or up to one that ended its process."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _run_and_exit(check, inputs, write_end)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8", errors="replace") as pipe:
        outcomes = [Outcome(*line.rstrip("\n").split("\t")) for line in pipe]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        outcomes.append(_of_death(status))
    return outcomes


def _of_death(status: int) -> Outcome:
    if status in (-signal.SIGPROF, -signal.SIGXCPU):
        return Outcome("hang", f"more than {CPU_S:g} s of CPU")
    if status == -signal.SIGALRM:
        return Outcome("hang", f"more than {WALL_S} s")
    name = signal.Signals(-status).name if status < 0 else f"exit code {status}"
    return Outcome("crash", name)


def _run_and_exit(check: Callable[[bytes], object], inputs: Sequence[bytes], pipe: int) -> NoReturn:
    """In the child: a line for each input that it survives."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = _address_bytes() + _ADDRESS_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for fault in (signal.SIGPROF, signal.SIGALRM, signal.SIGSEGV, signal.SIGABRT):
            signal.signal(fault, signal.SIG_DFL)
        before = _peak_bytes()
        for data in inputs:
            signal.setitimer(signal.ITIMER_PROF, CPU_S)
            signal.alarm(WALL_S)
            outcome = _outcome(check, data)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            more = _peak_bytes() - before
            if more > MEMORY_BYTES:
                outcome = Outcome("memory", f"{more >> 20} MB more, {outcome.kind}")
            os.write(pipe, f"{outcome.kind}\t{outcome.detail}\n".encode(errors="replace"))
            if more > MEMORY_BYTES:
                break  # the peak does not go down again
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def _outcome(check: Callable[[bytes], object], data: bytes) -> Outcome:
    try:
        check(data)
    except PipeprofError as error:
        return Outcome(type(error).__name__)
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:200]
        where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        return Outcome("exception", f"{type(error).__name__}: {text} ({where})")
    return Outcome("read")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _address_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
