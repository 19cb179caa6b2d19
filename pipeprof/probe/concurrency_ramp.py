"""Probe a storage with more and more concurrent requests, until more of them bring no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pipeprof.measure.environment import usable_cores
from pipeprof.probe.budget import Budget
from pipeprof.probe.load import apply_load
from pipeprof.probe.requirements import measure_checkpoint, measure_small_reads
from pipeprof.probe.result import Limits, LoadPoint, LoadSpec, Needs, Pattern, ProbeResult
from pipeprof.probe.target import Target
from pipeprof.probe.worker_pool import ReaderPool
from pipeprof.storage.urls import is_s3, redact
from pipeprof.units import format_bytes

_LEAST_GAIN = 1.05
"""A ramp ends when doubling the requests twice in a row gives less than this times the best."""
_KNEE_SHARE = 0.95
_LEAST_SPARE_CORES = 0.5
"""With fewer idle cores than this, another process is not worth starting."""
_RAMPS_SHARE = 0.6
"""The share of the budget for ramps; the remainder is for the feed."""

OnPoint = Callable[[LoadPoint], None]
"""Called with each load point as soon as it is measured."""


@dataclass(frozen=True)
class ProbeSpec:
    """What to probe, and how long, how much and with how many requests."""

    url: str
    seconds: float = 30.0
    """Time for all ramps together."""
    block_bytes: tuple[int, ...] = (4096, 65_536, 1 << 20, 8 << 20)
    most_in_flight: int = 64
    processes: int | None = None
    """Processes that share the concurrent requests. ``None`` begins with one, and doubles them
    while their CPU time is the limit and the machine has an idle core."""
    most_bytes: int = 8_000_000_000
    most_requests: int = 100_000
    feed_seconds: float = 5.0
    """Seconds for which the best load is sustained after the ramps."""
    write_bytes: int = 0
    """Bytes of a checkpoint that is written and removed; 0 writes nothing at all."""
    code_files: int = 200
    """Small files that are written, read and removed, where a checkpoint is."""

    @property
    def ramps(self) -> list[tuple[Pattern, int]]:
        """Pattern and block size of each ramp: random from small to large, then sequential."""
        sizes = sorted(self.block_bytes)
        return [*(("random", size) for size in sizes), ("sequential", sizes[-1])]


def probe(
    target: Target,
    spec: ProbeSpec,
    on_point: OnPoint = lambda point: None,
    options: Mapping[str, Any] | None = None,
) -> ProbeResult:
    """Probe the storage of ``target`` with ramps, and then its best load for longer. Files are
    written with fsspec's ``options``. Raises `StorageError`."""
    budget = Budget(spec.most_bytes, spec.most_requests)
    with ReaderPool(target, spec.processes or 1) as readers:
        ramps = budget.part(_RAMPS_SHARE)
        points = _run_ramps(readers, spec, ramps, on_point)
        budget.add(ramps)
        limits = find_limits(points)
        needs = _needs(readers, spec, limits.at, budget, dict(options or {})) if limits else None
    return ProbeResult(
        url=redact(spec.url),
        client=target.client,
        cache=target.cache,
        objects=len(target.objects),
        size_bytes=sum(item.size for item in target.objects),
        points=tuple(points),
        limits=limits,
        needs=needs,
        read_bytes=budget.bytes,
        read_requests=budget.requests,
        notes=(*_notes(spec, points, budget, target.shared), *target.notes),
        gpu_direct=target.gpu_direct,
    )


def _run_ramps(
    readers: ReaderPool, spec: ProbeSpec, budget: Budget, on_point: OnPoint
) -> list[LoadPoint]:
    start, points = perf_counter() - readers.startup_s, list[LoadPoint]()
    for place, (pattern, size) in enumerate(spec.ramps):
        share = 1 / (len(spec.ramps) - place)
        left_s = spec.seconds - (perf_counter() - start - readers.startup_s)
        seconds, part = max(0.0, left_s) * share, budget.part(share)
        for point in _ramp(readers, spec, pattern, size, seconds, part):
            points.append(point)
            on_point(point)
        budget.add(part)
    return points


def _ramp(
    readers: ReaderPool,
    spec: ProbeSpec,
    pattern: Pattern,
    size: int,
    seconds: float,
    budget: Budget,
) -> Iterator[LoadPoint]:
    """Yield a point for 1, 2, 4, … concurrent requests, while these give more."""
    depths = [1 << power for power in range(spec.most_in_flight.bit_length())]
    best, weak = 0.0, 0

    def measured(demand: LoadSpec, share: float) -> LoadPoint | None:
        # other blocks each time: the last ones may be in a cache
        seed = demand.concurrency * readers.processes
        return apply_load(readers, demand, seconds / len(depths), budget, seed, share)

    for place, depth in enumerate(depths):
        # time and budget are for the whole ramp, though most ramps end early
        share, demand = 1 / (len(depths) - place), LoadSpec(pattern, size, depth)
        point = measured(demand, share)
        may_grow = spec.processes is None and readers.target.shared
        while may_grow and point is not None and (more := _more_processes(point)):
            readers.grow(more)
            again = measured(demand, share)
            if again is None or again.bytes_per_s < point.bytes_per_s:
                break
            point = again
        if point is None:
            return
        yield point
        weak = 0 if point.bytes_per_s >= best * _LEAST_GAIN else weak + 1
        best = max(best, point.bytes_per_s)
        if weak == 2:
            return


def _needs(
    readers: ReaderPool, spec: ProbeSpec, demand: LoadSpec, budget: Budget, options: dict[str, Any]
) -> Needs | None:
    """Measure the sustained feed and, where writing is allowed, a checkpoint and small files.
    Returns ``None`` where neither is wanted."""
    if not spec.feed_seconds and not spec.write_bytes:
        return None
    feed = None
    if spec.feed_seconds:
        share = 0.5 if spec.write_bytes else 1.0
        feed = apply_load(readers, demand, spec.feed_seconds, budget, 0, share)
    if not spec.write_bytes:
        return Needs(feed)
    return Needs(
        feed,
        measure_checkpoint(spec.url, options, spec.write_bytes, readers, demand, budget),
        measure_small_reads(spec.url, options, spec.code_files),
    )


def _more_processes(point: LoadPoint) -> int:
    """Return how many processes may give more under the same load; 0 where more would not help."""
    possible = min(2 * point.processes, point.demand.concurrency, usable_cores())
    idle = point.spare_cores is None or point.spare_cores >= _LEAST_SPARE_CORES
    return possible if point.client_bound and idle and possible > point.processes else 0


def find_limits(points: Sequence[LoadPoint]) -> Limits | None:
    """Return the limits that the points show; ``None`` without points."""
    if not points:
        return None
    fastest = max(points, key=lambda point: point.bytes_per_s)
    knee = min(
        (point for point in points if point.bytes_per_s >= _KNEE_SHARE * fastest.bytes_per_s),
        key=lambda point: point.demand.concurrency,
    )
    block_bytes = knee.demand.block_bytes
    single = next(point for point in points if point.demand.block_bytes == block_bytes)
    smallest = min(point.demand.block_bytes for point in points)
    small = [point for point in points if point.demand.block_bytes == smallest]
    most_requests = max(small, key=lambda point: point.requests_per_s)
    return Limits(
        bytes_per_s=fastest.bytes_per_s,
        at=knee.demand,
        stream_bytes_per_s=max(p.bytes_per_s for p in points if p.demand.concurrency == 1),
        requests_per_s=most_requests.requests_per_s,
        latency=small[0],
        needed_in_flight=fastest.bytes_per_s / block_bytes * single.p50_s,
        bandwidth_client_bound=fastest.client_bound,
        requests_client_bound=most_requests.client_bound,
    )


def _notes(
    spec: ProbeSpec, points: Sequence[LoadPoint], budget: Budget, shared: bool
) -> Iterator[str]:
    used = max((point.processes for point in points), default=1)
    if spec.processes is None and used > 1:
        yield (
            f"up to {used} processes shared the requests, as fewer had no CPU time left; "
            "set their number by --processes"
        )
    if budget.spent:
        yield "--max-bytes or --max-requests cut some loads short, which are less certain"
    sizes = sorted({point.demand.block_bytes for point in points if point.client_bound})
    if not sizes:
        return
    if usable_cores() <= (spec.processes or used):
        advice = "more machines at once"
    elif spec.processes is None and shared:
        advice = "a machine with idle cores"
    else:
        advice = f"--processes {usable_cores()}"
    if is_s3(spec.url):
        advice += " or another --s3-client"
    yield (
        f"client-bound with requests of {', '.join(map(format_bytes, sizes))}: this client "
        f"had no CPU time left, and the storage may give more; try {advice}"
    )
