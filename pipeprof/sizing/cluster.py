"""A cluster on one file system, simulated: what averages hide, which is that every step waits for
the node that gets its data last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, sqrt
from statistics import mean

import numpy as np

from pipeprof.analyze.predict.event_engine import Mailbox, Process, SharedResource, World

STEPS = 60
"""Simulated in a run."""
WARMUP = 10
"""Of these are left out, so that prefetched batches do not flatter."""
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Cluster:
    """Nodes that read one file system and step together."""

    nodes: int
    step_s: float
    """On a node's batches, all accelerators side by side."""
    bytes_per_step: float
    """That a node reads for one step."""
    storage_bandwidth: float = inf
    """Bytes/s of the file system, shared by all nodes."""
    client_bandwidth: float = inf
    """Bytes/s of one node."""
    latency_s: float = 0.0
    """Until the first byte of a step's data."""
    ahead: int = 2
    """Steps whose data is fetched beforehand, at once."""
    read_spread: float = 0.0
    """Standard deviation of a step's bytes and latency, of their mean; log-normal."""
    step_spread: float = 0.0
    """The same of a node's step."""


@dataclass(frozen=True)
class ClusterRun:
    """What came of it, over the seeds."""

    nodes: int
    au: float
    """Accelerator utilisation: time in the steps that nothing slows, of all time, 0..1."""
    au_range: tuple[float, float]
    """Over the seeds."""
    starved_fraction: float
    """Of the time, that in which the last node's data is waited for, 0..1."""
    straggler_share: float
    """Of the time, that in which faster nodes wait for the slowest step, 0..1."""


def simulate_cluster(cluster: Cluster, seeds: Sequence[int] = SEEDS) -> ClusterRun:
    """The mean over ``seeds``. 1,024 nodes take some seconds."""
    runs = [_Run(cluster, seed).run() for seed in seeds]
    au, starved, straggling = (mean(column) for column in zip(*runs, strict=True))
    every = [run[0] for run in runs]
    return ClusterRun(cluster.nodes, au, (min(every), max(every)), starved, straggling)


def most_nodes(cluster: Cluster, target_au: float, limit: int = 4096) -> int:
    """The most nodes that still reach ``target_au``, found by halving; 0: not even one does."""

    def reaches(nodes: int) -> bool:
        return simulate_cluster(replace(cluster, nodes=nodes), SEEDS[:1]).au >= target_au

    if not reaches(1):
        return 0
    good, bad = 1, 2
    while bad <= limit and reaches(bad):
        good, bad = bad, 2 * bad
    if bad > limit:
        return limit
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if reaches(middle) else (good, middle)
    return good


class _Run:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        chance = np.random.default_rng(seed)
        shape = (cluster.nodes, STEPS)
        self._reads = _spread(chance, cluster.read_spread, shape)
        self._steps = _spread(chance, cluster.step_spread, shape)
        self._time = SharedResource()
        # no node is faster than its own network, of which its fetches have equal parts
        each = cluster.client_bandwidth / cluster.ahead
        self._link = SharedResource(cluster.storage_bandwidth, each)
        self._world = World((self._time, self._link))
        self._asked = [Mailbox(self._world) for _ in range(cluster.nodes)]
        self._ready = [Mailbox(self._world) for _ in range(cluster.nodes)]
        self._spent = (0.0, 0.0, 0.0)

    def run(self) -> tuple[float, float, float]:
        self._world.run(self._train())
        return self._spent

    def _train(self) -> Process:
        """All nodes: a step begins when the last has its data, and ends with the slowest."""
        cluster = self._cluster
        for node in range(cluster.nodes):
            for step in range(cluster.ahead):
                self._world.wake(self._fetch(node))
                self._asked[node].put(step)
        began_s = starved_s = straggled_s = 0.0
        for step in range(STEPS):
            if step == WARMUP:
                began_s, starved_s, straggled_s = self._world.now, 0.0, 0.0
            asked_s = self._world.now
            for node in range(cluster.nodes):
                yield self._ready[node]
                self._ready[node].take()
                self._asked[node].put(step + cluster.ahead)
            starved_s += self._world.now - asked_s
            slowest = float(self._steps[:, step].max())
            straggled_s += cluster.step_s * (slowest - 1)
            yield self._time, cluster.step_s * slowest
        all_s = self._world.now - began_s
        useful_s = cluster.step_s * (STEPS - WARMUP)
        self._spent = (useful_s / all_s, starved_s / all_s, straggled_s / all_s)

    def _fetch(self, node: int) -> Process:
        cluster = self._cluster
        while True:
            yield self._asked[node]
            step: int = self._asked[node].take()
            luck = float(self._reads[node, step % STEPS])  # beyond the last, to load the link
            yield self._time, cluster.latency_s * luck
            yield self._link, cluster.bytes_per_step * luck
            self._ready[node].put(step)


def _spread(
    chance: np.random.Generator, spread: float, shape: tuple[int, int]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Log-normal factors of mean 1."""
    if not spread:
        return np.ones(shape)
    sigma = sqrt(log(1 + spread**2))
    return chance.lognormal(-(sigma**2) / 2, sigma, shape)
