"""How much of what is short would feed the accelerator, on made-up runs: exact, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import DataSource, MainProcess, Recommendation, Recording, RequestLog
from tests.analyze.pipelines import workers_run
from tests.analyze.runs import seen

TAKES = 0.95 * 4 / 0.005
"""Samples/s: a batch of 4 each 5 ms, for all but 5 % of the time."""
FEW = 20
"""Batches: too few to simulate, which takes its time."""


def advised(recording: Recording) -> dict[str, Recommendation]:
    return {one.setting: one for one in assemble(recording).recommendations}


def reading(first_byte: float, requests: int = 1, step_s: float = 0.005) -> Recording:
    """Two workers read 600 kB for a batch, in so many requests one after another; of each, that
    share is the wait for its first byte."""
    count, each_s = FEW * requests, 0.028 / requests
    run = seen(
        workers_run(FEW, cpu_share=0.05, step_s=step_s),
        bytes=600e3, requests=requests, read_s=0.028, decode_s=0.0,
    )  # fmt: skip
    log = RequestLog(
        count, bytes=FEW * 600_000, seconds=count * each_s, first_byte_count=count,
        first_byte_s=first_byte * count * each_s, busy_s=count * each_s, began_s=0.0,
        ended_s=count * each_s / 2, sizes=((600e3 / requests, count),),
        latencies=((each_s, count),), first_bytes=((first_byte * each_s, count),),
    )  # fmt: skip
    return replace(run, requests=log)


def test_cores_for_what_the_accelerator_takes():
    advice = advised(workers_run(cpu_share=1.0))["cores"]
    # 760 samples/s, and 30 ms of CPU time for 4 of them
    assert (advice.current, advice.proposed[:3]) == ("2", "5.7")
    assert "760 samples/s × 7.50 ms of CPU time each" in advice.why
    assert "2 cores give at most 267 samples/s" in advice.why
    assert "3.7 cores of other machines" in advice.why
    assert "batches that cost 0.35× the CPU time" in advice.why


def test_the_training_process_has_a_share_of_the_cores():
    busy = replace(workers_run(cpu_share=1.0), main=MainProcess(cpu_s=0.5, wall_s=1.0))
    assert advised(busy)["cores"].proposed.startswith("6.2 ")


def test_nothing_is_short_where_workers_feed_it():
    assert set(advised(workers_run())) == {"num_workers"}


def test_a_loop_without_an_accelerator_takes_whatever_it_gets():
    assert "cores" not in advised(workers_run(cpu_share=1.0, step_s=1e-6))
    assert "cores" not in advised(workers_run(cpu_share=1.0, step_s=0.0))


def test_bandwidth_for_what_the_accelerator_takes():
    """4 samples of 150 kB in some 15 ms of two workers; it takes them in 5.26."""
    full = replace(reading(0.1), source=DataSource("/data", "csv", 1, 4 * 10**9))
    assert assemble(full).diagnosis.bottleneck == "storage-bandwidth"
    advice = advised(full)["storage bandwidth"]
    assert pytest.approx(TAKES) == 760
    assert advice.proposed.startswith("114 MB/s (2.")
    assert "760 samples/s × 150 kB read each" in advice.why
    assert "the bytes for a sample" in advice.why
    assert (
        "a local disk with that bandwidth. At the present rate, copying all 4.00 GB takes 100 s"
        in advice.why
    )


def test_bandwidth_where_only_read_calls_were_counted():
    """Nothing was clocked, so whether the storage is full is open."""
    calls = seen(workers_run(cpu_share=0.05), bytes=0.0, logical_bytes=600e3, runqueue_s=0.0)
    advice = advised(calls)["storage bandwidth"]
    assert advice.proposed.startswith("114 MB/s (2.")
    assert "A run with more workers shows whether the storage gives more" in advice.why
    little = seen(workers_run(cpu_share=0.05), bytes=0.0, logical_bytes=6e3, runqueue_s=0.0)
    assert "storage bandwidth" not in advised(little), "400 kB/s fill no storage"


def test_requests_under_way_by_littles_law():
    waits = reading(0.9, requests=4, step_s=0.001)
    assert assemble(waits).diagnosis.bottleneck == "storage-latency"
    assert set(advised(reading(0.9, requests=4))) == {"num_workers"}, "seven feed it"
    workers, requests = advised(waits).values()
    assert workers.proposed == "16", "eight a core, and not enough"
    assert (requests.current, requests.proposed) == ("2.0", "26.6")
    assert "3,800 samples/s × 1 request each × 7.00 ms (Little's law)" in requests.why


def handed_over(**more: float) -> Recording:
    """Main takes 8 ms to receive each batch of 4, and 20 for a step."""
    run = workers_run(200, workers=4, fetch_s=0.012, transfer_s=0.032, step_s=0.020)
    return seen(run, **{"tensors": 2, "batch_bytes": 1e6} | more)


def test_batches_so_large_that_handing_them_over_does_not_matter():
    advice = advised(handed_over())["batch_size"]
    # 8 ms × 0.95 / (0.05 × 20 ms) = 7.6 times as large: eight
    assert (advice.current, advice.proposed) == ("4", "32")
    assert advice.predicted_samples_per_s == pytest.approx(32 / (0.008 + 8 * 0.020))
    assert advice.predicted_starved == pytest.approx(0.008 / 0.168)
    low, high = advice.interval
    assert low < advice.predicted_samples_per_s < high
    # seven times more of each of the 4 × 2 batches under way
    assert advice.cost.ram_bytes == 7 * 8 * 1e6
    assert "They change the training" in advice.why


def test_larger_batches_only_where_handing_over_does_not_grow_with_them():
    assert "batch_size" not in advised(handed_over(tensors=0)), "pickled"
    assert "batch_size" not in advised(handed_over(tensors=40)), "to be packed first"
    vast = workers_run(200, workers=4, fetch_s=0.012, transfer_s=0.032, step_s=0.001)
    assert "batch_size" not in advised(seen(vast, tensors=2)), "152 times as large"
