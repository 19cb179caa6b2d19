"""What a team is asked to do, and what comes of it, where all rates are exactly known."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pipeprof.cli.probe_hosts_page import hosts_document
from pipeprof.errors import StorageError
from pipeprof.probe.concurrency_ramp import ProbeSpec
from pipeprof.probe.hosts.orders import Load, Look, Ramp
from pipeprof.probe.hosts.plan import host_counts, probe_hosts
from pipeprof.report.terminal.render import render_terminal
from tests.probe.hosts.model_team import BLOCK, ModelTeam

SPEC = ProbeSpec("x", seconds=100.0, most_bytes=1 << 40, most_requests=1 << 40)


def eight(**changed):
    return ModelTeam(**{"hosts_bytes_per_s": [1e6] * 8, "storage_bytes_per_s": 3e6, **changed})


def shown(result) -> str:
    return " ".join(render_terminal(hosts_document(result)).split())


def test_hosts_are_doubled_up_to_all():
    assert host_counts(1) == [1]
    assert host_counts(8) == [1, 2, 4, 8]
    assert host_counts(11) == [1, 2, 4, 8, 11]


def test_the_limits_of_a_host_and_of_the_storage():
    result = probe_hosts(eight(), SPEC)
    assert result.bandwidth.per_host.value == pytest.approx(1e6)
    assert result.bandwidth.total.value == pytest.approx(3e6)
    assert result.bandwidth.knee == pytest.approx(3)
    assert [point.hosts for point in result.bandwidth_points] == [1, 2, 4, 8, 8, 4, 2, 1]
    assert result.feed.bytes_per_s == pytest.approx(3e6)
    assert result.slow == ()
    assert (
        "The storage gives 3.00 MB/s in all, and a host takes at most 1.00 MB/s: more than 3.00 "
        "hosts bring no more." in shown(result)
    )


def test_where_hosts_do_not_reach_the_limit_of_the_storage_that_is_said():
    result = probe_hosts(eight(storage_bytes_per_s=1e9), SPEC)
    assert result.bandwidth.total is None
    text = shown(result)
    assert "8 hosts do not reach the limit of the storage: each gets 1.00 MB/s" in text
    assert "at least 8.00 MB/s" in text


def test_one_host_that_gets_all():
    assert "One host gets all that the storage gives: 800 kB/s." in shown(
        probe_hosts(eight(storage_bytes_per_s=8e5), SPEC)
    )


def test_a_job_on_one_host():
    text = shown(probe_hosts(ModelTeam([1e6], 3e6), SPEC))
    assert "This host gets 1.00 MB/s." in text
    assert "knee" not in text


def test_each_round_takes_the_hosts_from_the_other_end():
    team = eight()
    probe_hosts(team, SPEC)
    single = [hosts for hosts, order in team.orders if isinstance(order, Load) and len(hosts) == 1]
    assert single[:4] == [(0,), (7,), (0,), (7,)], "with the best load, and with small blocks"


def test_a_slow_host_is_found_by_itself_and_counts_as_a_part_of_one():
    rates = [1e6] * 8
    rates[7] = 2e5
    result = probe_hosts(eight(hosts_bytes_per_s=rates, storage_bytes_per_s=6e6), SPEC)
    (slow,) = result.slow
    assert (slow.host, slow.bytes_per_s) == ("node7", pytest.approx(2e5))
    assert slow.others_bytes_per_s == pytest.approx(1e6)
    assert result.bandwidth.per_host.value == pytest.approx(1e6)
    assert result.bandwidth.total.value == pytest.approx(6e6)
    assert "Slow: node7." in shown(result)
    assert "node7 200 kB/s 1.00 MB/s" in shown(result)


def test_a_slow_host_that_gets_its_full_share_while_all_read_is_found_too():
    """Eight hosts share 3 MB/s: 375 kB/s each, and the slow one can have 400."""
    rates = [1e6] * 8
    rates[4] = 4e5
    result = probe_hosts(eight(hosts_bytes_per_s=rates), SPEC)
    assert [each.host for each in result.slow] == ["node4"]
    assert result.bandwidth.per_host.value == pytest.approx(1e6)
    assert result.bandwidth.total.value == pytest.approx(3e6)


def test_a_slow_host_reads_alone_for_as_much_longer():
    rates = [1e6] * 8
    rates[7] = 2.5e5
    team = eight(hosts_bytes_per_s=rates, storage_bytes_per_s=1e9)
    probe_hosts(team, SPEC)
    orders = [(hosts, order) for hosts, order in team.orders if isinstance(order, Load)]
    curve_s = orders[0][1].seconds
    alone = [order.seconds for hosts, order in orders if hosts == (7,)][-1]
    assert alone == pytest.approx(4 * curve_s)


def test_loads_that_were_too_short_for_a_rate_are_counted():
    team = eight()
    answered = team.order
    team.order = lambda hosts, order, limit_s: {
        host: replace(answer, load=replace(answer.load, point=None)) if answer.load else answer
        for host, answer in answered(hosts, order, limit_s).items()
    }
    result = probe_hosts(team, SPEC)
    assert result.bandwidth is None
    assert "Too few requests ended to report limits; increase --seconds." in shown(result)
    assert "17 loads ended before each host showed a rate, and are left out" in shown(result)


def test_a_storage_that_many_hosts_share_is_not_read_once_for_each_of_them():
    team = ModelTeam([1e6] * 64, 1e6)
    probe_hosts(team, SPEC)
    loads = [hosts for hosts, order in team.orders if isinstance(order, Load)]
    assert len(loads) == 2 * 2 * 7 + 1, "the curve, with two sizes of blocks, and the feed"


def test_all_hosts_together_keep_to_the_limits_of_bytes_and_requests():
    spec = ProbeSpec("x", seconds=100.0, most_bytes=5_000_000, most_requests=4_000)
    result = probe_hosts(eight(), spec)
    assert result.read_bytes <= spec.most_bytes
    assert result.read_requests <= spec.most_requests
    assert "--max-bytes or --max-requests cut some loads short" in shown(result)


def test_seconds_are_for_the_whole_probe():
    team = eight(storage_bytes_per_s=1e9)
    probe_hosts(team, ProbeSpec("x", seconds=100.0, feed_seconds=0))
    orders = [order for _, order in team.orders if isinstance(order, Load | Ramp)]
    assert sum(order.seconds for order in orders) == pytest.approx(100.0)


def test_checkpoints_of_all_hosts_and_what_another_one_wrote():
    team = eight(write_s=4.0)
    spec = ProbeSpec("x", seconds=100.0, write_bytes=2_000_000)
    saved = probe_hosts(team, spec).checkpoint
    assert saved.alone_bytes_per_s == pytest.approx(8 * 2e6 / 4.0)
    assert saved.feed_bytes_per_s == pytest.approx(3e6)
    restore = team.orders[-1][1]
    assert restore.read_files == tuple(f"x/{host}/checkpoint" for host in [1, 2, 3, 4, 5, 6, 7, 0])


def test_a_host_that_does_not_see_the_url_is_named():
    with pytest.raises(StorageError, match=r"1 of 8 hosts \(node5\) failed: no such folder"):
        probe_hosts(eight(failed={5: "no such folder"}), SPEC)
    with pytest.raises(StorageError, match=r"^no such folder$"):
        probe_hosts(eight(failed=dict.fromkeys(range(8), "no such folder")), SPEC)


def test_hosts_that_see_other_objects_are_named():
    with pytest.raises(StorageError, match=r"2 of 8 hosts \(node2, node6\) see other objects at x"):
        probe_hosts(eight(digests={2: "other", 6: "other"}), SPEC)


def test_a_host_that_dies_is_left_out_and_named():
    result = probe_hosts(eight(dead_from={3: 6}), SPEC)
    assert "node3 ended during the probe" in result.notes
    assert result.hosts == tuple(f"node{host}" for host in range(8) if host != 3)
    assert result.bandwidth.total.value == pytest.approx(3e6)


def test_a_host_that_never_answered_is_named():
    result = probe_hosts(eight(dead_from={3: 0}), SPEC)
    assert any("1 of 8 hosts (host 3) did not answer" in note for note in result.notes)


def test_when_none_is_left_the_probe_ends():
    team = eight(dead_from=dict.fromkeys(range(8), 4))
    with pytest.raises(StorageError, match="No host of the probe answers any more"):
        probe_hosts(team, SPEC)


def test_json_has_the_first_host_as_fio_does_and_the_curve_beside_it():
    data = json.loads(json.dumps(probe_hosts(eight(), SPEC).to_dict()))
    assert data["jobs"][0]["jobname"] == "randread-10-1"
    assert data["hosts"]["bandwidth"]["knee"] == pytest.approx(3)
    assert data["hosts"]["bandwidth_points"][3]["by_host"]["node0"]["bytes_per_s"] == 375_000
    assert data["hosts"]["bandwidth_points"][3]["demand"]["block_bytes"] == BLOCK


def test_hosts_look_before_anything_is_read():
    team = eight()
    probe_hosts(team, SPEC)
    assert [type(order) for _, order in team.orders[:2]] == [Look, Ramp]
