"""Simulate a cluster on one file system, in which every step waits for the last node's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, sqrt
from statistics import mean

import numpy as np

from pipeprof.analyze.predict.event_engine import Mailbox, Process, SharedResource, Time, World

STEPS = 60
"""Simulated steps of a run."""
WARMUP = 10
"""First steps that are left out, as prefetched batches make them faster."""
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Cluster:
    """Nodes that read one file system and step together."""

    nodes: int
    step_s: float
    """Seconds of a training step; the accelerators of a node run concurrently."""
    bytes_per_step: float
    """Bytes that a node reads for one step."""
    storage_bandwidth: float = inf
    """Bytes/s of the file system, shared by all nodes."""
    client_bandwidth: float = inf
    """Bytes/s of one node."""
    latency_s: float = 0.0
    """Seconds until the first byte of a step's data arrives."""
    ahead: int = 2
    """Number of steps whose data a node prefetches concurrently."""
    read_spread: float = 0.0
    """Relative standard deviation of a step's bytes and latency; log-normal."""
    step_spread: float = 0.0
    """Relative standard deviation of a node's step; log-normal."""


@dataclass(frozen=True)
class ClusterRun:
    """The result of a simulation, as means over its seeds."""

    nodes: int
    au: float
    """Accelerator utilisation: the share of time in undelayed steps, 0..1."""
    au_range: tuple[float, float]
    """Lowest and highest utilisation over the seeds."""
    starved_fraction: float
    """Share of the time in which all wait for the last node's data, 0..1."""
    straggler_share: float
    """Share of the time in which faster nodes wait for the slowest step, 0..1."""


def simulate_cluster(cluster: Cluster, seeds: Sequence[int] = SEEDS) -> ClusterRun:
    """Simulate the cluster once per seed. 1,024 nodes take some seconds."""
    runs = [_Simulation(cluster, seed).run() for seed in seeds]
    au, starved, straggling = (mean(column) for column in zip(*runs, strict=True))
    every = [run[0] for run in runs]
    return ClusterRun(cluster.nodes, au, (min(every), max(every)), starved, straggling)


def most_nodes(cluster: Cluster, target_au: float, limit: int = 4096) -> int:
    """Return the most nodes that reach ``target_au``, by bisection; 0 where not even one does."""

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


class _Simulation:
    """One simulated run of a cluster."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        random = np.random.default_rng(seed)
        shape = (cluster.nodes, STEPS)
        self._reads = _spread(random, cluster.read_spread, shape)
        self._steps = _spread(random, cluster.step_spread, shape)
        self._time = Time()
        # a node's concurrent fetches share its network bandwidth equally
        each = cluster.client_bandwidth / cluster.ahead
        self._link = SharedResource(cluster.storage_bandwidth, each)
        self._world = World((self._time, self._link))
        slots = range(cluster.ahead)
        self._asked, self._ready = (
            [[Mailbox(self._world) for _ in slots] for _ in range(cluster.nodes)] for _ in range(2)
        )
        """For each node and concurrent fetch. As with torch's workers, each fetch has every
        ``ahead``-th step, and data are used in order."""
        self._shares = (0.0, 0.0, 0.0)

    def run(self) -> tuple[float, float, float]:
        """Return the shares of useful, starved and straggling time, 0..1 each."""
        self._world.run(self._train())
        return self._shares

    def _train(self) -> Process:
        """Train on all nodes; a step begins with the last data, and ends with the slowest node."""
        cluster = self._cluster
        for node in range(cluster.nodes):
            for slot in range(cluster.ahead):
                self._world.wake(self._fetch(node, slot))
                self._asked[node][slot].put(slot)
        began_s = starved_s = straggled_s = 0.0
        for step in range(STEPS):
            if step == WARMUP:
                began_s, starved_s, straggled_s = self._world.now, 0.0, 0.0
            asked_s = self._world.now
            for node in range(cluster.nodes):
                slot = step % cluster.ahead
                yield self._ready[node][slot]
                self._ready[node][slot].take()
                self._asked[node][slot].put(step + cluster.ahead)
            starved_s += self._world.now - asked_s
            slowest = float(self._steps[:, step].max())
            straggled_s += cluster.step_s * (slowest - 1)
            yield self._time, cluster.step_s * slowest
        all_s = self._world.now - began_s
        useful_s = cluster.step_s * (STEPS - WARMUP)
        self._shares = (useful_s / all_s, starved_s / all_s, straggled_s / all_s)

    def _fetch(self, node: int, slot: int) -> Process:
        cluster, asked = self._cluster, self._asked[node][slot]
        while True:
            yield asked
            step: int = asked.take()
            factor = float(self._reads[node, step % STEPS])  # steps beyond the last load the link
            yield self._time, cluster.latency_s * factor
            yield self._link, cluster.bytes_per_step * factor
            self._ready[node][slot].put(step)


def _spread(
    random: np.random.Generator, spread: float, shape: tuple[int, int]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return log-normal factors with mean 1 and standard deviation ``spread``."""
    if not spread:
        return np.ones(shape)
    sigma = sqrt(log(1 + spread**2))
    return random.lognormal(-(sigma**2) / 2, sigma, shape)
