"""What the loads come to, of made-up points and of a storage that sleeps."""

from __future__ import annotations

import pytest

from pipeprof.probe.ramp import ProbeSpec, limits, probe
from pipeprof.probe.result import Demand, Point
from tests.probe.test_load import Sleeps


def point(block: int, concurrency: int, per_s: float, p50_s: float, pattern="random") -> Point:
    demand = Demand(pattern, block, concurrency)
    return Point(demand, round(per_s), round(per_s) * block, 1.0, per_s, per_s * block, p50_s,
                 p50_s, p50_s, p50_s, p50_s, cpu_cores=0.1)  # fmt: skip


POINTS = [
    point(1000, 1, 100, 0.010), point(1000, 2, 200, 0.010), point(1000, 4, 210, 0.020),
    point(10_000, 1, 50, 0.020), point(10_000, 2, 98, 0.020), point(10_000, 4, 100, 0.040),
    point(10_000, 1, 60, 0.016, "sequential"),
]  # fmt: skip


def test_limits():
    found = limits(POINTS)
    assert found is not None
    assert found.bytes_per_s == 1_000_000
    assert found.at == Demand("random", 10_000, 2), "98 % of the most, with half the requests"
    assert found.stream_bytes_per_s == 600_000
    assert found.requests_per_s == 210
    assert found.latency is POINTS[0]
    assert found.needed_in_flight == pytest.approx(100 * 0.020)
    assert limits([]) is None


def test_a_ramp_ends_when_more_at_a_time_give_no_more():
    spec = ProbeSpec("x", seconds=3.0, block_bytes=(1000,), most_in_flight=32)
    seen = []
    result = probe(Sleeps(0.01, at_once=2), spec, seen.append)
    depths = [one.demand.concurrency for one in result.points if one.demand.pattern == "random"]
    assert depths == [1, 2, 4, 8]
    assert result.points == tuple(seen)
    assert result.limits is not None
    assert result.limits.requests_per_s == pytest.approx(200, rel=0.3)
    assert result.limits.at.concurrency == 2
    assert result.limits.needed_in_flight == pytest.approx(2, rel=0.4)
    assert result.notes == ()


def test_what_may_be_read_is_shared_among_the_loads():
    spec = ProbeSpec("x", seconds=5.0, block_bytes=(1000,), most_requests=200)
    target = Sleeps(0.001)
    result = probe(target, spec)
    assert len(target.asked) == result.read_requests <= 200
    assert {one.demand.pattern for one in result.points} == {"random", "sequential"}
    assert "--max-requests" in result.notes[0]


def test_the_json_is_named_as_by_fio():
    result = probe(Sleeps(0.005), ProbeSpec("x", 1.0, (1000,), most_in_flight=2)).to_dict()
    job = result["jobs"][0]
    assert job["jobname"] == "randread-1000-1"
    assert job["job options"] == {"rw": "randread", "bs": "1000", "numjobs": "1"}
    read = job["read"]
    assert read["bw_bytes"] == pytest.approx(1000 * read["iops"], rel=1e-3)
    assert read["io_bytes"] == 1000 * read["total_ios"]
    assert read["iops"] == pytest.approx(200, rel=0.3)
    assert read["clat_ns"]["percentile"]["50.000000"] == pytest.approx(5e6, rel=0.5)
    assert result["pipeprof probe"]["limits"]["at"]["pattern"] in ("random", "sequential")
