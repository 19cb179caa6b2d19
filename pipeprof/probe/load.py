"""Ask for blocks, so many at a time, for so long; say what came."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from random import Random
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt

from pipeprof.errors import PipeprofError
from pipeprof.probe.result import Demand, Point
from pipeprof.probe.target import Target
from pipeprof.storage import ObjectInfo

_UNSTEADY = 0.2
"""Of the time, at the start, in which what is measured does not count: the queue fills, and bursts
that a limit allows are used up."""
_FEWEST = 3
"""Requests; of fewer no rate can be told."""

Floats = npt.NDArray[np.float64]
Request = tuple[ObjectInfo, int, int]
"""Object, offset, length."""
Done = tuple[float, float, int]
"""When a request began and ended, and its bytes."""


class Budget:
    """What may be read; it costs money in some stores."""

    def __init__(self, most_bytes: float, most_requests: float) -> None:
        self.bytes = self.requests = 0
        """So far."""
        self.spent = False
        """Whether a request had to be refused."""
        self._most_bytes, self._most_requests = most_bytes, most_requests
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Whether one more request of ``size`` is allowed."""
        with self._lock:
            if self.bytes + size > self._most_bytes or self.requests >= self._most_requests:
                self.spent = True
                return False
            self.bytes += size
            self.requests += 1
            return True

    def part(self, share: float) -> Budget:
        """A ``share`` of what is left, to be put back by `add`."""
        return Budget(
            (self._most_bytes - self.bytes) * share, (self._most_requests - self.requests) * share
        )

    def add(self, part: Budget) -> None:
        """What was used of a `part`."""
        self.bytes += part.bytes
        self.requests += part.requests
        self.spent |= part.spent


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

    def drawn(self, demand: Demand, stream: int, seed: int) -> Iterator[Request]:
        """Without end: for one of ``demand.concurrency`` streams."""
        total = len(self)
        if demand.pattern == "random":
            chance = Random(f"{seed} {stream}")
            while True:
                yield self[chance.randrange(total)]
        first = stream * total // demand.concurrency
        for number in count(first):
            yield self[number % total]


def load(target: Target, demand: Demand, seconds: float, budget: Budget, seed: int) -> Point | None:
    """``None`` when too little came to tell. Raises what a read raises."""
    blocks = Blocks(target.objects, demand.block_bytes)
    done: list[Done] = []
    failed: list[PipeprofError] = []
    stopped: list[float] = []
    start = perf_counter()
    end = start + seconds

    def ask(stream: int) -> None:
        for item, offset, length in blocks.drawn(demand, stream, seed):
            began = perf_counter()
            if began >= end or failed:
                return
            if not budget.take(length):
                stopped.append(began)
                return
            try:
                size = target.read(item, offset, length)
            except PipeprofError as error:
                failed.append(error)
                return
            done.append((began, perf_counter(), size))

    cpu_s = process_time()
    threads = [threading.Thread(target=ask, args=(each,)) for each in range(demand.concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cores = (process_time() - cpu_s) / (perf_counter() - start)
    if failed:
        raise failed[0]
    end = min([end, *stopped])
    return _point(demand, done, start + _UNSTEADY * (end - start), end, cores)


def _point(
    demand: Demand, done: list[Done], steady_s: float, end_s: float, cores: float
) -> Point | None:
    """Those that end later ended in a queue that ran empty."""
    steady = sorted(((b, e, s) for b, e, s in done if steady_s <= e <= end_s), key=lambda d: d[1])
    if len(steady) < _FEWEST:
        return None
    began, ended, sizes = np.array(steady).T
    took = ended - began
    p50, p95, p99 = np.quantile(took, [0.5, 0.95, 0.99]).tolist()
    return Point(
        demand=demand,
        requests=len(steady),
        bytes=int(sizes.sum()),
        seconds=float(ended[-1] - ended[0]),
        requests_per_s=_slope(ended, np.arange(len(steady), dtype=float)),
        bytes_per_s=_slope(ended, np.cumsum(sizes)),
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        mean_s=float(took.mean()),
        most_s=float(took.max()),
        cpu_cores=cores,
    )


def _slope(moments: Floats, reached: Floats) -> float:
    """Of the straight line through what was ``reached`` by each of the ``moments``. What comes in
    bursts, as from a disk under a limit, would count a burst too many from the first to the last.
    """
    apart = moments - moments.mean()
    spread = float(apart @ apart)
    return float(apart @ (reached - reached.mean())) / spread if spread else 0.0
