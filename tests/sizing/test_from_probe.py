"""Sizing from what a probe measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeprof.cli.app import run
from pipeprof.errors import UsageError
from pipeprof.probe.concurrency_ramp import ProbeSpec, find_limits
from pipeprof.probe.hosts.plan import probe_hosts
from pipeprof.probe.result import ProbeResult
from pipeprof.sizing.size import size
from pipeprof.sizing.sources import from_probe
from tests.probe.hosts.model_team import ModelTeam
from tests.probe.test_concurrency_ramp import point
from tests.sizing.test_size import figures, given


def of_one_host() -> dict[str, Any]:
    """A probe of a storage of 1 ms and 1 GB/s a request, where four of them give 2 GB/s."""
    points = (
        point(1_000_000, 1, 500, 0.002), point(1_000_000, 4, 2000, 0.002),
        point(9_000_000, 1, 100, 0.010), point(9_000_000, 1, 100, 0.010, "sequential"),
    )  # fmt: skip
    result = ProbeResult("x", "direct", "none", 1, 1, 1, 1, points, find_limits(points))
    return json.loads(json.dumps(result.to_dict()))


def test_a_probe_of_one_host_shows_what_a_host_gets_and_not_what_the_storage_gives():
    found = {name: each.value for name, each in from_probe(of_one_host(), "probe.json").items()}
    assert found == pytest.approx(
        {"client_bandwidth": 2e9, "stream_bandwidth": 1e9, "first_byte_s": 0.001}
    )
    assert "storage_bandwidth" not in found


def test_a_probe_of_many_hosts_shows_how_many_accelerators_it_feeds_on_how_many_nodes():
    result = probe_hosts(ModelTeam([1e9] * 8, 3e9), ProbeSpec("x", most_bytes=1 << 50))
    found = from_probe(json.loads(json.dumps(result.to_dict())), "probe.json")
    assert found["client_bandwidth"].value == pytest.approx(1e9)
    assert found["storage_bandwidth"].value == pytest.approx(3e9)
    assert found["storage_bandwidth"].origin == "probe probe.json"
    needs = {"samples_per_s": 1000, "bytes_per_sample": 1e5, "target_au": 1.0, "gpus_per_node": 4}
    sheet = figures(size(found | given(**needs), 8))
    # an accelerator reads 100 MB/s: 30 of them 3 GB/s, and 10 in a node 1 GB/s
    assert sheet["gpus_fed"] == pytest.approx(30)
    assert sheet["nodes_fed"] == pytest.approx(7.5)
    assert sheet["gpus_fed_per_node"] == pytest.approx(10)


def test_hosts_that_do_not_reach_its_limit_do_not_show_what_a_storage_gives():
    result = probe_hosts(ModelTeam([1e9] * 4, 1e12), ProbeSpec("x", most_bytes=1 << 50))
    found = from_probe(json.loads(json.dumps(result.to_dict())), "probe.json")
    assert "storage_bandwidth" not in found


@pytest.mark.parametrize("wrong", [{}, {"pipeprof probe": 3}, {"pipeprof probe": {"limits": {}}}])
def test_what_is_no_probe_is_refused(wrong):
    with pytest.raises(UsageError, match=r"p\.json is no result of `pipeprof probe --json`"):
        from_probe(wrong, "p.json")
    with pytest.raises(UsageError, match="too few requests ended to show a limit"):
        from_probe({"pipeprof probe": {"limits": None}}, "p.json")


def test_the_command_takes_what_the_probe_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("probe.json")
    file.write_text(json.dumps(of_one_host()))
    command = ["size", "--gpus", "8", "--samples-per-s", "1000", "--bytes-per-sample", "1MB"]
    assert run([*command, "--probe", str(file), "--client-bandwidth", "3GB"]) == 0
    shown = capsys.readouterr().out
    assert "1.00 ms, probe probe.json" in shown
    assert "3.00 GB/s, given" in shown
    assert run([*command, "--probe", "none.json"]) == 2
    assert "none.json cannot be read: No such file or directory" in capsys.readouterr().err
    file.write_text("[")
    assert run([*command, "--probe", str(file)]) == 2
    assert f"{file} is no result of `pipeprof probe --json`" in capsys.readouterr().err
