"""More and more requests at a time, until that gives no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pipeprof.measure.environment import usable_cores
from pipeprof.probe.budget import Budget
from pipeprof.probe.load import load
from pipeprof.probe.requirements import checkpoint, code
from pipeprof.probe.result import Limits, LoadPoint, LoadSpec, Needs, Pattern, ProbeResult
from pipeprof.probe.target import Target
from pipeprof.probe.worker_pool import ReaderPool
from pipeprof.storage.urls import is_s3, redact
from pipeprof.units import format_bytes

_GAIN = 1.05
"""A ramp ends when twice as many requests twice in a row gave less than this times the best."""
_KNEE = 0.95
_CORE_TO_SPARE = 0.5
"""Of a core: less is not worth another process."""
_RAMPS_SHARE = 0.6
"""Of what may be read; the rest is for the feed."""

Watch = Callable[[LoadPoint], None]


@dataclass(frozen=True)
class ProbeSpec:
    url: str
    seconds: float = 30.0
    """For all ramps together."""
    block_bytes: tuple[int, ...] = (4096, 65_536, 1 << 20, 8 << 20)
    most_in_flight: int = 64
    processes: int | None = None
    """That share the requests under way; ``None``: one, and twice as many whenever the CPU time of
    those there are is the limit and the machine has a core to spare."""
    most_bytes: int = 8_000_000_000
    most_requests: int = 100_000
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
    with ReaderPool(target, spec.processes or 1) as readers:
        ramps = budget.part(_RAMPS_SHARE)
        points = _ramps(readers, spec, ramps, watch)
        budget.add(ramps)
        found = limits(points)
        needs = _needs(readers, spec, found.at, budget, dict(options or {})) if found else None
    return ProbeResult(
        url=redact(spec.url),
        client=target.client,
        cache=target.cache,
        objects=len(target.objects),
        size_bytes=sum(item.size for item in target.objects),
        points=tuple(points),
        limits=found,
        needs=needs,
        read_bytes=budget.bytes,
        read_requests=budget.requests,
        notes=(*_notes(spec, points, budget, target.shared), *target.notes),
    )


def _ramps(readers: ReaderPool, spec: ProbeSpec, budget: Budget, watch: Watch) -> list[LoadPoint]:
    start, points = perf_counter() - readers.startup_s, list[LoadPoint]()
    for place, (pattern, size) in enumerate(spec.ramps):
        share = 1 / (len(spec.ramps) - place)
        left_s = spec.seconds - (perf_counter() - start - readers.startup_s)
        seconds, part = max(0.0, left_s) * share, budget.part(share)
        for point in _ramp(readers, spec, pattern, size, seconds, part):
            points.append(point)
            watch(point)
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
    depths = [1 << power for power in range(spec.most_in_flight.bit_length())]
    best, weak = 0.0, 0

    def loaded(demand: LoadSpec, share: float) -> LoadPoint | None:
        # other blocks each time: the last ones may be in somebody's cache
        seed = demand.concurrency * readers.processes
        return load(readers, demand, seconds / len(depths), budget, seed, share)

    for place, depth in enumerate(depths):
        # time and volume are for the whole ramp, though most end early
        share, demand = 1 / (len(depths) - place), LoadSpec(pattern, size, depth)
        point = loaded(demand, share)
        may_grow = spec.processes is None and readers.target.shared
        while may_grow and point is not None and (more := _more_than(point)):
            readers.grow(more)
            again = loaded(demand, share)
            if again is None or again.bytes_per_s < point.bytes_per_s:
                break
            point = again
        if point is None:
            return
        yield point
        weak = 0 if point.bytes_per_s >= best * _GAIN else weak + 1
        best = max(best, point.bytes_per_s)
        if weak == 2:
            return


def _needs(
    readers: ReaderPool, spec: ProbeSpec, demand: LoadSpec, budget: Budget, options: dict[str, Any]
) -> Needs:
    """The feed, and where writing is allowed the other two."""
    share = 0.5 if spec.write_bytes else 1.0
    feed = load(readers, demand, spec.feed_seconds, budget, 0, share) if spec.feed_seconds else None
    if not spec.write_bytes:
        return Needs(feed)
    return Needs(
        feed,
        checkpoint(spec.url, options, spec.write_bytes, readers, demand, budget),
        code(spec.url, options, spec.code_files),
    )


def _more_than(point: LoadPoint) -> int:
    """Processes that may give more of the same; 0: none would."""
    could = min(2 * point.processes, point.demand.concurrency, usable_cores())
    idle = point.spare_cores is None or point.spare_cores >= _CORE_TO_SPARE
    return could if point.client_bound and idle and could > point.processes else 0


def limits(points: Sequence[LoadPoint]) -> Limits | None:
    """``None`` of no points."""
    if not points:
        return None
    most = max(points, key=lambda point: point.bytes_per_s)
    at = min(
        (point for point in points if point.bytes_per_s >= _KNEE * most.bytes_per_s),
        key=lambda point: point.demand.concurrency,
    )
    alone = [point for point in points if point.demand.concurrency == 1]
    smallest = min(point.demand.block_bytes for point in points)
    small = [point for point in points if point.demand.block_bytes == smallest]
    most_small = max(small, key=lambda point: point.requests_per_s)
    single = next(one for one in points if one.demand.block_bytes == at.demand.block_bytes)
    return Limits(
        bytes_per_s=most.bytes_per_s,
        at=at.demand,
        stream_bytes_per_s=max(point.bytes_per_s for point in alone),
        requests_per_s=most_small.requests_per_s,
        latency=small[0],
        needed_in_flight=most.bytes_per_s / at.demand.block_bytes * single.p50_s,
        bandwidth_client_bound=most.client_bound,
        requests_client_bound=most_small.client_bound,
    )


def _notes(
    spec: ProbeSpec, points: Sequence[LoadPoint], budget: Budget, shared: bool
) -> Iterator[str]:
    used = max((point.processes for point in points), default=1)
    if spec.processes is None and used > 1:
        yield (
            f"up to {used} processes shared the requests, since the CPU time of fewer was used up; "
            "--processes says how many"
        )
    if budget.spent:
        yield "some loads were cut short by --max-bytes or --max-requests, and say less"
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
        "had no more CPU time, so these rates are its own, and the storage may give more; "
        f"try {advice}"
    )
