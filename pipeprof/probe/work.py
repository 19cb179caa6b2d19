"""Run the part of a load that one process has: threads that each read block after block."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from random import Random
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt

from pipeprof.errors import PipeprofError
from pipeprof.probe.budget import Budget
from pipeprof.probe.result import LoadSpec
from pipeprof.probe.target import Target
from pipeprof.storage import ObjectInfo

Floats = npt.NDArray[np.float64]
Request = tuple[ObjectInfo, int, int]
"""Object, offset and length."""


@dataclass(frozen=True)
class Slice:
    """The blocks that one of several hosts reads: every ``of``-th from ``index`` on."""

    index: int = 0
    of: int = 1


ALL = Slice()
"""All blocks, where one host reads alone."""


@dataclass(frozen=True)
class Job:
    """The part of a load that one process has."""

    demand: LoadSpec
    streams: range
    """The load's streams that this process runs, with a thread for each."""
    end_s: float
    """No request begins later, by perf_counter, which is the same clock in all processes."""
    budget: Budget
    seed: int
    part: Slice = ALL


@dataclass(frozen=True)
class JobResult:
    """The requests that a `Job` made, and what they cost."""

    done: Floats
    """A row for each request: when it began, when it ended, and its bytes."""
    budget: Budget
    """The budget of the job, with what was used of it."""
    stopped_s: float | None
    """When the budget first refused a request; ``None`` where it refused none."""
    cpu_s: float
    """CPU seconds of this process."""
    failed: PipeprofError | None


class Blocks:
    """The whole blocks of all objects, numbered from 0, or a part of them. A smaller object is one
    short block."""

    def __init__(self, objects: Sequence[ObjectInfo], block_bytes: int, part: Slice = ALL) -> None:
        self._objects, self._size = objects, block_bytes
        self._ends = list(accumulate(max(1, item.size // block_bytes) for item in objects))
        total = self._ends[-1]
        # with fewer blocks than hosts, some hosts read the same one
        self._numbers = range(part.index % min(part.of, total), total, part.of)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, at: int) -> Request:
        number = self._numbers[at]
        place = bisect_right(self._ends, number)
        item = self._objects[place]
        offset = (number - (self._ends[place - 1] if place else 0)) * self._size
        return item, offset, min(self._size, item.size - offset)

    def requests(self, demand: LoadSpec, stream: int, seed: int) -> Iterator[Request]:
        """Yield requests without end, for one of ``demand.concurrency`` streams."""
        total = len(self)
        if demand.pattern == "random":
            random = Random(f"{seed} {stream}")
            while True:
                yield self[random.randrange(total)]
        first = stream * total // demand.concurrency
        for number in count(first):
            yield self[number % total]


def run_job(target: Target, job: Job) -> JobResult:
    """Read until the job's time or budget ends, or an error."""
    blocks = Blocks(target.objects, job.demand.block_bytes, job.part)
    done: list[tuple[float, float, float]] = []
    failed: list[PipeprofError] = []
    stopped: list[float] = []
    cancelled = threading.Event()

    def read_blocks(stream: int) -> None:
        for item, offset, length in blocks.requests(job.demand, stream, job.seed):
            began = perf_counter()
            if began >= job.end_s or failed or cancelled.is_set():
                return
            if not job.budget.take(length):
                stopped.append(began)
                return
            try:
                size = target.read(item, offset, length)
            except PipeprofError as error:
                failed.append(error)
                return
            done.append((began, perf_counter(), size))

    cpu_s = process_time()
    threads = [threading.Thread(target=read_blocks, args=(stream,)) for stream in job.streams]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        cancelled.set()  # after Ctrl-C the threads would continue
    return JobResult(
        done=np.array(done, dtype=np.float64).reshape(-1, 3),
        budget=job.budget,
        stopped_s=min(stopped, default=None),
        cpu_s=process_time() - cpu_s,
        failed=failed[0] if failed else None,
    )
