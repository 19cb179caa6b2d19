"""One host of a probe, on real files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeprof.probe.concurrency_ramp import ProbeSpec
from pipeprof.probe.hosts.member import Member
from pipeprof.probe.hosts.orders import Load, Look, Ramp, Ready, Stop
from pipeprof.probe.result import LoadSpec
from pipeprof.probe.work import ALL, Blocks, Slice
from pipeprof.storage import ObjectInfo

FREE = 1 << 60


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a.bin", "b.bin"):
        (folder / name).write_bytes(os.urandom(1 << 20))
    return folder


def load(**changed) -> Load:
    demand = LoadSpec("sequential", 65_536, 2)
    return Load(**{"demand": demand, "seconds": 0.3, "most_bytes": FREE, "most_requests": FREE,
                   "seed": 1, **changed})  # fmt: skip


def test_hosts_that_see_the_same_objects_have_the_same_digest(data):
    seen = Member(ProbeSpec(str(data))).answer(Look(), ALL).listing
    assert (seen.objects, seen.size_bytes) == (2, 2 << 20)
    assert Member(ProbeSpec(str(data))).answer(Look(), ALL).listing.digest == seen.digest
    (data / "b.bin").write_bytes(b"less")
    assert Member(ProbeSpec(str(data))).answer(Look(), ALL).listing.digest != seen.digest


def test_hosts_read_different_blocks():
    objects = [ObjectInfo("a", "a", 1000), ObjectInfo("b", "b", 600)]
    parts = [Blocks(objects, 100, Slice(index, 3)) for index in range(3)]
    numbers = [[part[at] for at in range(len(part))] for part in parts]
    whole = Blocks(objects, 100)
    assert sorted((b for part in numbers for b in part), key=lambda b: (b[0].path, b[1])) == [
        whole[at] for at in range(16)
    ]
    demand = LoadSpec("random", 100, 1)
    for part, own in zip(parts, numbers, strict=True):
        requests = part.requests(demand, 0, seed=3)
        assert {next(requests) for _ in range(200)} == set(own)


def test_with_fewer_blocks_than_hosts_some_read_the_same_one():
    parts = [Blocks([ObjectInfo("a", "a", 200)], 100, Slice(index, 5)) for index in range(5)]
    assert [part[0][1] for part in parts] == [0, 100, 0, 100, 0]


def test_a_load_keeps_to_its_budget(data):
    member = Member(ProbeSpec(str(data)))
    found = member.answer(load(most_bytes=10 * 65_536), ALL).load
    assert (found.bytes, found.requests, found.cut_short) == (10 * 65_536, 10, True)
    member.close()


def test_the_best_load_of_this_host_alone(data):
    found = Member(ProbeSpec(str(data), block_bytes=(4096,))).answer(Ramp(1.0, FREE, FREE), ALL)
    assert found.ramp.limits is not None
    assert found.ramp.needs is None


def test_what_was_written_stays_until_the_probe_ends(data):
    first, second = Member(ProbeSpec(str(data))), Member(ProbeSpec(str(data)))
    wrote = [each.answer(load(read=False, write_bytes=3 << 20), ALL).load
             for each in (first, second)]  # fmt: skip
    files = tuple(each.wrote_file for each in wrote)
    assert [Path(file).stat().st_size for file in files] == [3 << 20, 3 << 20]
    assert all(each.wrote_s > 0 and each.point is None for each in wrote)
    # each reads what the other one wrote
    found = first.answer(load(read_files=files[::-1]), Slice(0, 2)).load
    assert found.point.bytes_per_s > 0
    assert not first.answer(Stop(), ALL).failed
    assert [Path(file).exists() for file in files] == [False, True]
    second.close()
    assert sorted(path.name for path in data.iterdir()) == ["a.bin", "b.bin"]


def test_processes_are_started_before_a_load(data):
    member = Member(ProbeSpec(str(data)))
    assert not member.answer(Ready(2), ALL).failed
    assert member.answer(load(), ALL).load.point.processes == 2
    member.close()


def test_what_fails_is_an_answer(tmp_path):
    answer = Member(ProbeSpec(str(tmp_path / "none"))).answer(Look(), ALL)
    assert str(tmp_path / "none") in answer.failed
