"""Apply a load to a storage for some seconds, and measure rates and latencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from time import perf_counter

import numpy as np

from pipeprof.measure.environment import usable_cores
from pipeprof.measure.host import idle_s
from pipeprof.probe.budget import Budget
from pipeprof.probe.result import LoadPoint, LoadSpec
from pipeprof.probe.work import ALL, Floats, Job, Slice
from pipeprof.probe.worker_pool import ReaderPool

_WARM_UP_SHARE = 0.2
"""The share of the time, at its start, that does not count: queues fill, and the bursts that a
rate limit allows are used up."""
_FEWEST_REQUESTS = 3
"""A rate needs at least so many requests, wholly or partly in the steady time."""
_FEWEST_PER_STREAM = 2
"""On average so many requests of a stream must end in the steady time, as streams may get unequal
shares of a link at different times."""
_ALL_COMPUTING, _LEAST_COMPUTING = 0.9, 0.2
"""Cores a process: from the first on, Python's one core is used up; from the second on, the load
is client-bound where the machine has no idle core either."""
_LEAST_SPARE_CORES = 0.1


def apply_load(
    readers: ReaderPool,
    demand: LoadSpec,
    seconds: float,
    budget: Budget,
    seed: int,
    share: float = 1.0,
    part: Slice = ALL,
) -> LoadPoint | None:
    """Read with ``demand`` for ``seconds``, and at most a ``share`` of the remaining ``budget``.

    Of the blocks only this host's ``part`` is read. Returns ``None`` when too few requests ended
    for a rate. Raises what a read raises.
    """
    used = min(readers.processes, demand.concurrency)
    start, idle_before_s = perf_counter(), idle_s()
    end = start + seconds
    results = readers.run(_jobs(demand, used, end, budget.part(share), seed, part))
    wall_s, idle_after_s = perf_counter() - start, idle_s()
    cores = sum(each.cpu_s for each in results) / wall_s
    spare = None
    if idle_before_s is not None and idle_after_s is not None:
        spare = (idle_after_s - idle_before_s) / wall_s
    for each in results:
        budget.add(each.budget)
    for each in results:
        if each.failed is not None:
            raise each.failed
    end = min([end, *(each.stopped_s for each in results if each.stopped_s is not None)])
    done = np.concatenate([each.done for each in results])
    point = _point(demand, done, start + _WARM_UP_SHARE * (end - start), end)
    return point and replace(
        point,
        cpu_cores=cores,
        processes=used,
        client_bound=_client_bound(cores, used, spare),
        spare_cores=spare,
    )


def _jobs(
    demand: LoadSpec, processes: int, end_s: float, budget: Budget, seed: int, part: Slice
) -> Sequence[Job]:
    """Divide the streams of a load, and its budget, among processes."""
    streams = range(demand.concurrency)
    parts = (streams[first::processes] for first in range(processes))
    return [Job(demand, p, end_s, budget.part(len(p) / len(streams)), seed, part) for p in parts]


def _point(demand: LoadSpec, done: Floats, from_s: float, to_s: float) -> LoadPoint | None:
    """Return the rates from ``from_s`` to ``to_s``, without the figures of the client. Later
    requests do not count: the queue empties while they end."""
    if len(done) < _FEWEST_REQUESTS:
        return None
    began, ended, sizes = done.T
    shares = _shares(began, ended, from_s, to_s)
    inside = (ended >= from_s) & (ended <= to_s)
    enough = np.count_nonzero(inside) >= _FEWEST_PER_STREAM * demand.concurrency
    if not enough or np.count_nonzero(shares) < _FEWEST_REQUESTS:
        return None
    took = (ended - began)[inside]
    p50, p95, p99 = np.quantile(took, [0.5, 0.95, 0.99]).tolist()
    return LoadPoint(
        demand=demand,
        requests=int(inside.sum()),
        bytes=int(sizes[inside].sum()),
        seconds=to_s - from_s,
        requests_per_s=float(shares.sum()) / (to_s - from_s),
        bytes_per_s=float(shares @ sizes) / (to_s - from_s),
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        mean_s=float(took.mean()),
        most_s=float(took.max()),
        cpu_cores=nan,
    )


def _client_bound(cores: float, processes: int, spare: float | None) -> bool:
    """Return whether ``processes`` use up the CPU time that they can have."""
    computing = cores / min(processes, usable_cores())
    no_core = spare is not None and spare < _LEAST_SPARE_CORES and computing >= _LEAST_COMPUTING
    return computing >= _ALL_COMPUTING or no_core


def _shares(began: Floats, ended: Floats, from_s: float, to_s: float) -> Floats:
    """Return for each request the share of its bytes that arrived between the two moments.

    The bytes of any moment are divided evenly among the requests in flight. Counting the requests
    that end instead would be a matter of luck for few large ones, or for bursts.
    """
    moments = np.concatenate([began, ended])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    in_flight = np.cumsum(np.where(order < len(began), 1, -1))[:-1]
    arrived = np.diff(moments) / np.maximum(in_flight, 1)
    # what a request in flight all the time would have received by each moment
    received = np.concatenate([[0.0], np.cumsum(arrived)])
    times = (began, ended, np.clip(began, from_s, to_s), np.clip(ended, from_s, to_s))
    first, last, first_inside, last_inside = (np.interp(each, moments, received) for each in times)
    whole = last - first
    shares: Floats = (last_inside - first_inside) / np.where(whole > 0, whole, np.inf)
    return shares
