"""Far more read than handed over: the rule and its words, on made-up runs."""

from dataclasses import replace

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import DataSource, RequestLog
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import found, seen, set_to

AMPLIFIED = {"bytes": 3e6, "tensors": 2, "batch_bytes": 290e3, "loose_bytes": 10e3}
"""Of each batch, which takes 30 ms to make and holds 4 samples."""
FEW = 20
"""Batches: too few to simulate, which takes its time."""


def test_bytes_that_are_read_for_nothing():
    assert found(seen(workers_run(FEW), **AMPLIFIED))["read-amplification"] == (
        "For a typical batch of 4 samples a worker reads 3.00 MB, 750 kB for a sample. The batch "
        "holds 300 kB: 10.0 times as much is read, at 100 MB/s.\n"
        "Read a row group once for all of its rows in a batch. The data set's __getitems__ "
        "receives the 4 indices of a batch at once, and a sampler can keep rows of one group "
        "together. Read only the columns you use (columns=[…]), and write smaller row groups. "
        "Where you use part of a file (clips, crops, large images), store that part: cut, scaled "
        "or computed once. A batch reads as much in any worker: do not change num_workers=2 "
        "first."
    )


def test_what_to_do_depends_on_who_asks_for_samples():
    iterable = found(set_to(seen(workers_run(FEW), **AMPLIFIED), kind="iterable"))
    assert "yield all that you need of it" in iterable["read-amplification"]
    single = found(seen(workers_run(FEW), **AMPLIFIED, samples=1))["read-amplification"]
    assert "a typical batch of 1 sample a worker reads 3.00 MB. The batch holds" in single
    assert "Take all rows of a row group at once" in single
    inline = found(seen(inline_run(FEW), **AMPLIFIED))["read-amplification"]
    assert "the training process reads 3.00 MB" in inline


def test_read_calls_count_where_no_read_was_clocked():
    native = seen(workers_run(FEW), **{**AMPLIFIED, "bytes": 0.0}, logical_bytes=6e6)
    assert "20.0 times as much is read, at 200 MB/s" in found(native)["read-amplification"]


FEW_BATCHES_READ = tuple(100e6 if row % 10 == 7 else 0.0 for row in range(FEW))


@pytest.mark.parametrize(
    "otherwise",
    [
        {"bytes": 1.7e6},  # hardly more than is handed over, as text is
        {"bytes": 0.5e6, "batch_bytes": 4e3},  # 17 MB/s: it does something else
        {"bytes": FEW_BATCHES_READ},  # each for those that follow
        {"batch_bytes": None},
        {"loose_bytes": None},  # the batch holds what cannot be weighed
        {"loose_bytes": 3e6},  # text, or images that are yet to be decoded
        {"batch_bytes": 0.0, "loose_bytes": 0.0},
    ],
)
def test_nothing_is_said_where_it_does_not_matter_or_is_not_known(otherwise):
    assert "read-amplification" not in found(seen(workers_run(FEW), **{**AMPLIFIED, **otherwise}))


def test_a_slow_storage_makes_few_bytes_matter():
    """18 MB/s, and a request takes longer than any answer."""
    slow = seen(workers_run(FEW, fetch_s=1.5, step_s=0.01), **{**AMPLIFIED, "bytes": 27e6})
    assert "read-amplification" not in found(slow)
    log = RequestLog(
        FEW, bytes=FEW * 27_000_000, seconds=28.0, busy_s=28.0, began_s=0.0, ended_s=28.0,
        sizes=((27e6, FEW),), latencies=((1.4, FEW),),
    )  # fmt: skip
    bound = seen(replace(slow, requests=log), read_s=1.4, decode_s=0.0)
    assert assemble(bound).diagnosis.bottleneck == "storage-bandwidth"
    text = found(bound)["read-amplification"]
    assert "90.0 times as much is read, at 18.0 MB/s" in text
    assert "fsspec reads ahead" in text, "there were requests"


def test_nothing_is_said_of_a_fed_accelerator_nor_of_our_own_readers():
    assert found(seen(workers_run(FEW, step_s=0.050), **AMPLIFIED)) == {}
    ours = replace(seen(workers_run(FEW), **AMPLIFIED), source=DataSource("/data", "csv", 1, 10**9))
    assert "read-amplification" not in found(ours)
