"""Ask for blocks, so many at a time, for so long; say what came."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from time import perf_counter

import numpy as np

from pipeprof.measure.environment import usable_cores
from pipeprof.measure.host import idle_s
from pipeprof.probe.budget import Budget
from pipeprof.probe.result import LoadPoint, LoadSpec
from pipeprof.probe.work import Floats, Job
from pipeprof.probe.worker_pool import ReaderPool

_UNSTEADY = 0.2
"""Of the time, at the start, in which what is measured does not count: the queue fills, and bursts
that a limit allows are used up."""
_FEWEST = 3
"""Requests, wholly or in part in the steady time; of fewer no rate can be told."""
_TURNS = 2
"""Times as many as are under way must end in it: some get more of a link than others, and it is
not known when."""
_BUSY, _STARVED = 0.9, 0.2
"""Of a core a process: Python computes on no more than one at a time, and that is used up; or so
much, and the machine has no core to spare."""
_SPARE = 0.1
"""Cores."""


def load(
    readers: ReaderPool,
    demand: LoadSpec,
    seconds: float,
    budget: Budget,
    seed: int,
    share: float = 1.0,
) -> LoadPoint | None:
    """``None`` when too little came to tell. ``share``: of what is left of ``budget`` no more is
    read. Raises what a read raises."""
    streams, used = range(demand.concurrency), min(readers.processes, demand.concurrency)
    start, idle_before_s = perf_counter(), idle_s()
    end, part = start + seconds, budget.part(share)
    works = readers.run([
        Job(demand, own, end, part.part(len(own) / len(streams)), seed)
        for own in (streams[place::used] for place in range(used))
    ])  # fmt: skip
    wall_s = perf_counter() - start
    cores = sum(each.cpu_s for each in works) / wall_s
    idle_after_s = idle_s()
    spare = None
    if idle_before_s is not None and idle_after_s is not None:
        spare = (idle_after_s - idle_before_s) / wall_s
    for each in works:
        budget.add(each.budget)
    for each in works:
        if each.failed is not None:
            raise each.failed
    end = min([end, *(each.stopped_s for each in works if each.stopped_s is not None)])
    done = np.concatenate([each.done for each in works])
    point = _point(demand, done, start + _UNSTEADY * (end - start), end)
    return point and replace(
        point,
        cpu_cores=cores,
        processes=used,
        client_bound=_client_bound(cores, used, spare),
        spare_cores=spare,
    )


def _point(demand: LoadSpec, done: Floats, from_s: float, to_s: float) -> LoadPoint | None:
    """Of what came from ``from_s`` to ``to_s``, the client's part aside; requests that end later
    end in a queue that runs empty."""
    if len(done) < _FEWEST:
        return None
    began, ended, sizes = done.T
    shares = _shares(began, ended, from_s, to_s)
    inside = (ended >= from_s) & (ended <= to_s)
    enough = np.count_nonzero(inside) >= _TURNS * demand.concurrency
    if not enough or np.count_nonzero(shares) < _FEWEST:
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
    """Whether the CPU time that ``processes`` can have is used up."""
    computing = cores / min(processes, usable_cores())
    starved = spare is not None and spare < _SPARE and computing >= _STARVED
    return computing >= _BUSY or starved


def _shares(began: Floats, ended: Floats, from_s: float, to_s: float) -> Floats:
    """Of each request the share that came between the two moments. What comes at any moment is
    shared out evenly among the requests under way; counting those that end would make the rate of
    few large ones, or of such as end in bursts, a matter of luck."""
    moments = np.concatenate([began, ended])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    under_way = np.cumsum(np.where(order < len(began), 1, -1))[:-1]
    grown = np.diff(moments) / np.maximum(under_way, 1)
    # what a request that was under way all the time would have got by then
    so_far = np.concatenate([[0.0], np.cumsum(grown)])
    ends = (began, ended, np.clip(began, from_s, to_s), np.clip(ended, from_s, to_s))
    first, last, first_in, last_in = (np.interp(each, moments, so_far) for each in ends)
    whole = last - first
    shares: Floats = (last_in - first_in) / np.where(whole > 0, whole, np.inf)
    return shares
