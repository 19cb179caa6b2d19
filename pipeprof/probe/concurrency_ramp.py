"""More and more requests at a time, until that gives no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pipeprof.measure.environment import usable_cores
from pipeprof.probe.budget import Budget
from pipeprof.probe.load import load
from pipeprof.probe.requirements import checkpoint, code
from pipeprof.probe.result import Limits, LoadPoint, LoadSpec, Needs, Pattern, ProbeResult
from pipeprof.probe.target import Target
from pipeprof.probe.worker_pool import Crew
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
    with Crew(target, spec.processes or 1) as crew:
        ramps = budget.part(_RAMPS_SHARE)
        points = _ramps(crew, spec, ramps, watch)
        budget.add(ramps)
        found = limits(points)
        needs = _needs(crew, spec, found.at, budget, dict(options or {})) if found else None
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


def _ramps(crew: Crew, spec: ProbeSpec, budget: Budget, watch: Watch) -> list[LoadPoint]:
    start, points = perf_counter() - crew.startup_s, list[LoadPoint]()
    for place, (pattern, size) in enumerate(spec.ramps):
        share = 1 / (len(spec.ramps) - place)
        left_s = spec.seconds - (perf_counter() - start - crew.startup_s)
        seconds, part = max(0.0, left_s) * share, budget.part(share)
        points += _ramp(crew, spec, pattern, size, seconds, part, watch)
        budget.add(part)
    return points


def _needs(
    crew: Crew, spec: ProbeSpec, demand: LoadSpec, budget: Budget, options: dict[str, Any]
) -> Needs:
    """The feed, and where writing is allowed the other two."""
    part = budget.part(0.5 if spec.write_bytes else 1.0)
    feed = load(crew, demand, spec.feed_seconds, part, seed=0) if spec.feed_seconds else None
    budget.add(part)
    if not spec.write_bytes:
        return Needs(feed)
    return Needs(
        feed,
        checkpoint(spec.url, options, spec.write_bytes, crew, demand, budget),
        code(spec.url, options, spec.code_files),
    )


def _ramp(
    crew: Crew, spec: ProbeSpec, pattern: Pattern, size: int, seconds: float, budget: Budget,
    watch: Watch,
) -> list[LoadPoint]:  # fmt: skip
    points: list[LoadPoint] = []
    depths = [1 << power for power in range(spec.most_in_flight.bit_length())]
    best, weak = 0.0, 0
    for depth in depths:
        # time and volume are for the whole ramp, though most end early
        share, demand = 1 / (len(depths) - len(points)), LoadSpec(pattern, size, depth)
        point = _loaded(crew, demand, seconds / len(depths), budget, share)
        may_grow = spec.processes is None and crew.target.shared
        while may_grow and point is not None and (more := _more_than(point)):
            crew.grow(more)
            again = _loaded(crew, demand, seconds / len(depths), budget, share)
            if again is None or again.bytes_per_s < point.bytes_per_s:
                break
            point = again
        if point is None:
            break
        points.append(point)
        watch(point)
        weak = 0 if point.bytes_per_s >= best * _GAIN else weak + 1
        best = max(best, point.bytes_per_s)
        if weak == 2:
            break
    return points


def _loaded(
    crew: Crew, demand: LoadSpec, seconds: float, budget: Budget, share: float
) -> LoadPoint | None:
    part = budget.part(share)
    # other blocks each time: the last ones may be in somebody's cache
    point = load(crew, demand, seconds, part, seed=demand.concurrency * crew.processes)
    budget.add(part)
    return point


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


def _notes(spec: ProbeSpec, points: Sequence[LoadPoint], budget: Budget, shared: bool) -> list[str]:
    notes = []
    used = max((point.processes for point in points), default=1)
    if spec.processes is None and used > 1:
        notes.append(
            f"up to {used} processes shared the requests, since the CPU time of fewer was used up; "
            "--processes says how many"
        )
    if budget.spent:
        notes.append("some loads were cut short by --max-bytes or --max-requests, and say less")
    bound = [point for point in points if point.client_bound]
    if bound:
        sizes = sorted({point.demand.block_bytes for point in bound})
        grown = spec.processes is None and shared
        tries = ["a machine with idle cores" if grown else f"--processes {usable_cores()}"]
        if usable_cores() <= (spec.processes or used):
            tries = ["more machines at once"]
        if is_s3(spec.url):
            tries.append("another --s3-client")
        notes.append(
            f"client-bound with requests of {', '.join(map(format_bytes, sizes))}: this client "
            "had no more CPU time, so these rates are its own, and the storage may give more; "
            f"try {' or '.join(tries)}"
        )
    return notes
