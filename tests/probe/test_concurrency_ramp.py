"""What the loads come to, of made-up points and of a storage that sleeps."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import fsspec
import pytest

from pipeprof.cli.probe_page import probe_document
from pipeprof.probe.concurrency_ramp import ProbeSpec, _more_processes, find_limits, probe
from pipeprof.probe.result import LoadPoint, LoadSpec
from pipeprof.probe.target import open_target
from pipeprof.report.terminal.render import render_terminal
from pipeprof.units import format_count
from tests.probe.test_load import Sleeps


def point(block: int, concurrency: int, per_s: float, p50_s: float, pattern="random") -> LoadPoint:
    demand = LoadSpec(pattern, block, concurrency)
    return LoadPoint(demand, round(per_s), round(per_s) * block, 1.0, per_s, per_s * block, p50_s,
                 p50_s, p50_s, p50_s, p50_s, cpu_cores=0.1)  # fmt: skip


POINTS = [
    point(1000, 1, 100, 0.010), point(1000, 2, 200, 0.010), point(1000, 4, 210, 0.020),
    point(10_000, 1, 50, 0.020), point(10_000, 2, 98, 0.020), point(10_000, 4, 100, 0.040),
    point(10_000, 1, 60, 0.016, "sequential"),
]  # fmt: skip


def quick(block_bytes: int, **changed: Any) -> ProbeSpec:
    return ProbeSpec("x", 1.0, (block_bytes,), feed_seconds=0.1, **changed)


def test_limits():
    found = find_limits(POINTS)
    assert found is not None
    assert found.bytes_per_s == 1_000_000
    assert found.at == LoadSpec("random", 10_000, 2), "98 % of the most, with half the requests"
    assert found.stream_bytes_per_s == 600_000
    assert found.requests_per_s == 210
    assert found.latency is POINTS[0]
    assert found.needed_in_flight == pytest.approx(100 * 0.020)
    assert find_limits([]) is None


@pytest.mark.timed
def test_a_ramp_ends_when_more_at_a_time_give_no_more():
    spec = ProbeSpec("x", seconds=6.0, block_bytes=(1000,), most_in_flight=128, feed_seconds=0.1)
    seen = []
    result = probe(Sleeps(0.01, at_once=2), spec, seen.append)
    depths = [one.demand.concurrency for one in result.points if one.demand.pattern == "random"]
    assert depths[:4] == [1, 2, 4, 8]
    assert depths[-1] < 128
    assert result.points == tuple(seen)
    assert result.limits is not None
    assert 100 < result.limits.requests_per_s < 210, "a busy machine adds to each sleep"
    assert 2 <= result.limits.at.concurrency <= 4
    needed = result.limits.requests_per_s * result.limits.latency.p50_s
    assert result.limits.needed_in_flight == pytest.approx(needed)
    assert result.notes == ()


def test_what_may_be_read_is_shared_among_the_loads():
    spec = ProbeSpec("x", seconds=5.0, block_bytes=(1000,), most_requests=200, feed_seconds=0.1)
    target = Sleeps(0.001)
    result = probe(target, spec)
    assert len(target.asked) == result.read_requests <= 200
    assert {one.demand.pattern for one in result.points} == {"random", "sequential"}
    assert "--max-requests" in result.notes[0]


@pytest.mark.timed
def test_rates_of_a_client_that_computes_all_the_time_are_said_to_be_its_own(monkeypatch):
    monkeypatch.setattr("pipeprof.probe.work.process_time", perf_counter)  # it never waits
    result = probe(Sleeps(0.005), quick(1000, most_in_flight=2, processes=1))
    assert result.limits is not None
    assert result.limits.requests_client_bound
    assert result.limits.bandwidth_client_bound
    alone = result.limits.latency
    assert alone.client_s == pytest.approx(alone.mean_s, rel=0.3)
    assert result.notes[0].startswith("client-bound with requests of 1.00 kB: ")
    assert result.to_dict()["jobs"][0]["client_bound"]
    page = render_terminal(probe_document(result))
    assert f"≥ {format_count(result.limits.requests_per_s)}/s, client-bound" in page
    assert "!: client-bound" in page


@pytest.mark.timed
def test_a_client_that_computes_all_the_time_is_given_processes(monkeypatch):
    """This one seems to; the others do not, so two are enough for all that follows."""
    monkeypatch.setattr("pipeprof.probe.work.process_time", perf_counter)
    monkeypatch.setattr("pipeprof.probe.load.idle_s", lambda: None)  # others may be at work
    monkeypatch.setattr("pipeprof.probe.concurrency_ramp.usable_cores", lambda: 8)
    result = probe(Picklable(0.005), quick(1000, most_in_flight=8))
    used = [(one.demand.concurrency, one.processes) for one in result.points]
    assert used[0] == (1, 1)
    assert used[2:4] == [(4, 2), (8, 2)]
    assert result.notes[0].startswith(
        "up to 2 processes shared the requests, as fewer had no CPU time"
    )
    assert result.to_dict()["jobs"][3]["processes"] == 2


class Picklable(Sleeps):
    shared = True

    def __reduce__(self):
        return Picklable, (self._request_s,)


def test_what_other_processes_may_not_find_is_read_by_one(monkeypatch):
    monkeypatch.setattr("pipeprof.probe.work.process_time", perf_counter)
    monkeypatch.setattr("pipeprof.probe.load.idle_s", lambda: None)
    monkeypatch.setattr("pipeprof.probe.concurrency_ramp.usable_cores", lambda: 8)
    memory = fsspec.filesystem("memory")
    memory.pipe("/alone/data", bytes(1 << 16))
    try:
        result = probe(open_target("memory://alone"), quick(4096, most_in_flight=2))
    finally:
        memory.rm("/alone", recursive=True)
    assert {one.processes for one in result.points} == {1}
    assert "this client had no CPU time left" in result.notes[-1]
    assert "--processes 8" in result.notes[-1], "it may be tried"


@pytest.mark.parametrize(
    ("concurrency", "processes", "bound", "spare", "more"),
    [
        (8, 1, True, 3.0, 2),
        (8, 2, True, 2.0, 4),
        (8, 4, True, 2.0, 6),
        (8, 6, True, 2.0, 0),
        (1, 1, True, 3.0, 0),
        (8, 1, False, 3.0, 0),
        (8, 1, True, 0.4, 0),
        (8, 1, True, None, 2),
    ],
)
def test_processes_are_added_while_that_can_help(
    concurrency, processes, bound, spare, more, monkeypatch
):
    monkeypatch.setattr("pipeprof.probe.concurrency_ramp.usable_cores", lambda: 6)
    one = replace(
        point(1000, concurrency, 100, 0.01),
        processes=processes, client_bound=bound, spare_cores=spare,
    )  # fmt: skip
    assert _more_processes(one) == more


def test_rates_of_a_client_that_waits_are_the_storages(monkeypatch):
    monkeypatch.setattr("pipeprof.probe.load.idle_s", lambda: None)  # others may be at work
    result = probe(Sleeps(0.005), quick(1000, most_in_flight=2))
    assert result.limits is not None
    assert not result.limits.requests_client_bound
    assert result.notes == ()
    assert "client-bound" not in render_terminal(probe_document(result))


@pytest.mark.timed
def test_the_json_is_named_as_by_fio():
    result = probe(Sleeps(0.005), quick(1000, most_in_flight=2)).to_dict()
    job = result["jobs"][0]
    assert job["jobname"] == "randread-1000-1"
    assert job["job options"] == {"rw": "randread", "bs": "1000", "numjobs": "1"}
    read = job["read"]
    assert read["bw_bytes"] == pytest.approx(1000 * read["iops"], rel=1e-3)
    assert read["io_bytes"] == 1000 * read["total_ios"]
    assert read["iops"] * read["clat_ns"]["mean"] == pytest.approx(1e9, rel=0.1), "one at a time"
    assert 5e6 <= read["clat_ns"]["percentile"]["50.000000"] <= read["clat_ns"]["max"]
    assert result["pipeprof probe"]["limits"]["at"]["pattern"] in ("random", "sequential")
