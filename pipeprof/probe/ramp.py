"""More and more requests at a time, until that gives no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pipeprof.probe.load import Budget, load
from pipeprof.probe.needs import checkpoint, code
from pipeprof.probe.result import Demand, Limits, Needs, Pattern, Point, ProbeResult
from pipeprof.probe.target import Target
from pipeprof.storage.urls import redact
from pipeprof.units import format_bytes

_GAIN = 1.05
"""A ramp ends when twice as many requests twice in a row gave less than this times the best."""
_KNEE = 0.95
_RAMPS_SHARE = 0.6
"""Of what may be read; the rest is for the feed."""
_BUSY_CORES = 0.9

Watch = Callable[[Point], None]


@dataclass(frozen=True)
class ProbeSpec:
    url: str
    seconds: float = 30.0
    """For all ramps together."""
    block_bytes: tuple[int, ...] = (4096, 65_536, 1 << 20, 8 << 20)
    most_in_flight: int = 64
    most_bytes: float = 8e9
    most_requests: float = 100_000
    feed_seconds: float = 5.0
    """For which the best load is kept up after the ramps."""
    write_bytes: int = 0
    """Of a checkpoint to be written, and removed; 0: nothing is written."""
    code_files: int = 200
    """Small files to be written, and removed, when anything is."""

    @property
    def ramps(self) -> list[tuple[Pattern, int]]:
        """Small random requests for their latency, large ones for bandwidth."""
        sizes = sorted(self.block_bytes)
        return [*(("random", size) for size in sizes), ("sequential", sizes[-1])]


def probe(
    target: Target,
    spec: ProbeSpec,
    watch: Watch = lambda point: None,
    options: Mapping[str, Any] | None = None,
) -> ProbeResult:
    """``options`` are fsspec's, for what is written. Raises `StorageError`."""
    budget = Budget(spec.most_bytes, spec.most_requests)
    ramps = budget.part(_RAMPS_SHARE)
    points = _ramps(target, spec, ramps, watch)
    budget.add(ramps)
    found = limits(points)
    return ProbeResult(
        url=redact(spec.url),
        client=target.client,
        cache=target.cache,
        objects=len(target.objects),
        size_bytes=sum(item.size for item in target.objects),
        points=tuple(points),
        limits=found,
        needs=_needs(target, spec, found.at, budget, dict(options or {})) if found else None,
        read_bytes=budget.bytes,
        read_requests=budget.requests,
        notes=tuple(_notes(points, budget)),
    )


def _ramps(target: Target, spec: ProbeSpec, budget: Budget, watch: Watch) -> list[Point]:
    end, points = perf_counter() + spec.seconds, list[Point]()
    for place, (pattern, size) in enumerate(spec.ramps):
        share = 1 / (len(spec.ramps) - place)
        seconds, part = (end - perf_counter()) * share, budget.part(share)
        points += _ramp(target, pattern, size, spec.most_in_flight, seconds, part, watch)
        budget.add(part)
    return points


def _needs(
    target: Target, spec: ProbeSpec, demand: Demand, budget: Budget, options: dict[str, Any]
) -> Needs:
    """The feed, and where writing is allowed the other two."""
    part = budget.part(0.5 if spec.write_bytes else 1.0)
    feed = load(target, demand, spec.feed_seconds, part, seed=0) if spec.feed_seconds else None
    budget.add(part)
    if not spec.write_bytes:
        return Needs(feed)
    return Needs(
        feed,
        checkpoint(spec.url, options, spec.write_bytes, target, demand, budget),
        code(spec.url, options, spec.code_files),
    )


def _ramp(
    target: Target, pattern: Pattern, size: int, most: int, seconds: float, budget: Budget,
    watch: Watch,
) -> list[Point]:  # fmt: skip
    points: list[Point] = []
    depths = [1 << power for power in range(most.bit_length())]
    best, weak = 0.0, 0
    for depth in depths:
        # time and volume are for the whole ramp, though most end early
        part = budget.part(1 / (len(depths) - len(points)))
        point = load(target, Demand(pattern, size, depth), seconds / len(depths), part, depth)
        budget.add(part)
        if point is None:
            break
        points.append(point)
        watch(point)
        weak = 0 if point.bytes_per_s >= best * _GAIN else weak + 1
        best = max(best, point.bytes_per_s)
        if weak == 2:
            break
    return points


def limits(points: Sequence[Point]) -> Limits | None:
    """``None`` of no points."""
    if not points:
        return None
    most = max(point.bytes_per_s for point in points)
    at = min(
        (point for point in points if point.bytes_per_s >= _KNEE * most),
        key=lambda point: point.demand.concurrency,
    )
    alone = [point for point in points if point.demand.concurrency == 1]
    smallest = min(point.demand.block_bytes for point in points)
    small = [point for point in points if point.demand.block_bytes == smallest]
    single = next(one for one in points if one.demand.block_bytes == at.demand.block_bytes)
    return Limits(
        bytes_per_s=most,
        at=at.demand,
        stream_bytes_per_s=max(point.bytes_per_s for point in alone),
        requests_per_s=max(point.requests_per_s for point in small),
        latency=small[0],
        needed_in_flight=most / at.demand.block_bytes * single.p50_s,
    )


def _notes(points: Sequence[Point], budget: Budget) -> list[str]:
    notes = []
    if budget.spent:
        notes.append("some loads were cut short by --max-bytes or --max-requests, and say less")
    busy = [point for point in points if point.cpu_cores >= _BUSY_CORES]
    if busy:
        sizes = sorted({point.demand.block_bytes for point in busy})
        notes.append(
            "this process itself used a whole core or more with requests of "
            f"{', '.join(map(format_bytes, sizes))}: the storage may give more to several processes"
        )
    return notes
