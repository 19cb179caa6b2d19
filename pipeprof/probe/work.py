"""One process's part in a load: threads, each of which asks for one block after another."""

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
"""Object, offset, length."""


@dataclass(frozen=True)
class Job:
    demand: LoadSpec
    streams: range
    """Which of the load's streams this process takes; a thread for each."""
    end_s: float
    """No request begins later. By perf_counter, which is the same clock in all processes."""
    budget: Budget
    seed: int


@dataclass(frozen=True)
class Work:
    """What came of a `Job`."""

    done: Floats
    """A row per request: when it began and ended, and its bytes."""
    budget: Budget
    """The job's, with what was used of it."""
    stopped_s: float | None
    """When a request had to be refused."""
    cpu_s: float
    """Of this process."""
    failed: PipeprofError | None


class Blocks:
    """The blocks of all objects, numbered from 0; the last of an object may be short, unless it
    has others."""

    def __init__(self, objects: Sequence[ObjectInfo], block_bytes: int) -> None:
        self._objects, self._size = objects, block_bytes
        self._ends = list(accumulate(max(1, item.size // block_bytes) for item in objects))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, number: int) -> Request:
        place = bisect_right(self._ends, number)
        item = self._objects[place]
        offset = (number - (self._ends[place - 1] if place else 0)) * self._size
        return item, offset, min(self._size, item.size - offset)

    def drawn(self, demand: LoadSpec, stream: int, seed: int) -> Iterator[Request]:
        """Without end: for one of ``demand.concurrency`` streams."""
        total = len(self)
        if demand.pattern == "random":
            chance = Random(f"{seed} {stream}")
            while True:
                yield self[chance.randrange(total)]
        first = stream * total // demand.concurrency
        for number in count(first):
            yield self[number % total]


def work(target: Target, job: Job) -> Work:
    """Until the job's end, its budget's, or an error."""
    blocks = Blocks(target.objects, job.demand.block_bytes)
    done: list[tuple[float, float, float]] = []
    failed: list[PipeprofError] = []
    stopped: list[float] = []
    given_up = threading.Event()

    def ask(stream: int) -> None:
        for item, offset, length in blocks.drawn(job.demand, stream, job.seed):
            began = perf_counter()
            if began >= job.end_s or failed or given_up.is_set():
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
    threads = [threading.Thread(target=ask, args=(stream,)) for stream in job.streams]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        given_up.set()  # by Ctrl-C, else they would read on
    return Work(
        done=np.array(done, dtype=np.float64).reshape(-1, 3),
        budget=job.budget,
        stopped_s=min(stopped, default=None),
        cpu_s=process_time() - cpu_s,
        failed=failed[0] if failed else None,
    )
