"""The simulated cluster, against closed forms."""

from dataclasses import replace
from time import perf_counter

import pytest

from pipeprof.sizing.cluster import Cluster, most_nodes, simulate_cluster
from pipeprof.sizing.inputs import BY_NAME
from pipeprof.sizing.simulated import SIMULATED
from pipeprof.sizing.size import size

EIGHT = Cluster(nodes=8, step_s=0.1, bytes_per_step=100e6, storage_bandwidth=8e9)
"""The file system gives exactly what eight nodes eat: 8 × 100 MB in 0.1 s."""


def test_a_file_system_that_gives_enough_starves_nobody():
    run = simulate_cluster(replace(EIGHT, storage_bandwidth=16e9))
    assert run.au == pytest.approx(1)
    assert run.starved_fraction == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("nodes", [9, 16, 64])
def test_nodes_beyond_what_it_gives_share_what_there_is(nodes):
    run = simulate_cluster(replace(EIGHT, nodes=nodes))
    assert run.au == pytest.approx(8 / nodes, rel=0.01)
    assert run.starved_fraction == pytest.approx(1 - 8 / nodes, rel=0.03)


def test_a_node_gets_no_more_than_its_own_network():
    run = simulate_cluster(replace(EIGHT, nodes=2, client_bandwidth=0.5e9))
    assert run.au == pytest.approx(0.5, rel=0.01)


def test_latency_is_hidden_by_what_is_fetched_ahead():
    slow = replace(EIGHT, nodes=1, bytes_per_step=1, latency_s=0.3)
    assert simulate_cluster(replace(slow, ahead=1)).au == pytest.approx(0.1 / 0.3, rel=0.02)
    assert simulate_cluster(replace(slow, ahead=2)).au == pytest.approx(2 * 0.1 / 0.3, rel=0.02)
    assert simulate_cluster(replace(slow, ahead=4)).au == pytest.approx(1, rel=0.01)


def test_every_step_waits_for_the_slowest_node():
    """Of 64 log-normal steps the largest lies 2.3 or so deviations above the mean."""
    run = simulate_cluster(replace(EIGHT, nodes=64, storage_bandwidth=1e12, step_spread=0.1))
    assert run.starved_fraction == pytest.approx(0, abs=0.01)
    assert 1 / 1.35 < run.au < 1 / 1.2
    assert run.straggler_share == pytest.approx(1 - run.au, abs=0.01)


def test_reads_that_differ_starve_a_cluster_that_averages_say_is_fed():
    alike = replace(EIGHT, nodes=64, storage_bandwidth=1e12, client_bandwidth=1.2e9)
    assert simulate_cluster(alike).au == pytest.approx(1)
    assert simulate_cluster(replace(alike, read_spread=0.5)).au < 0.9


def test_where_it_breaks_is_found():
    assert most_nodes(EIGHT, 0.999) == 8
    assert most_nodes(EIGHT, 0.5) == 16
    assert most_nodes(replace(EIGHT, client_bandwidth=1e8), 0.9) == 0
    assert most_nodes(replace(EIGHT, storage_bandwidth=1e15), 0.9, limit=64) == 64


@pytest.mark.timed
def test_a_thousand_nodes_take_seconds():
    """The bar is 10 s."""
    start = perf_counter()
    simulate_cluster(replace(EIGHT, nodes=1024, read_spread=0.2))
    assert perf_counter() - start < 10


def test_a_sizing_is_run_when_asked():
    known = {
        name: BY_NAME[name].checked(value, "given")
        for name, value in {
            "gpus_per_node": 8, "batch_size": 100, "step_s": 0.1, "bytes_per_sample": 125e3,
            "storage_bandwidth": 8e9, "target_au": 0.9,
        }.items()
    }  # fmt: skip
    assert SIMULATED not in size(known, 128).sections
    sizing = size(known, 128, simulate=True)
    found = {each.name: each.value for each in sizing.sections[SIMULATED]}
    assert found["simulated_au"] == pytest.approx(0.5, rel=0.01)
    assert found["simulated_nodes_fed"] == 8
    lacking = size({"step_s": known["step_s"]}, 128, simulate=True).lacking
    assert "storage_bandwidth" in lacking["simulated_au"]
