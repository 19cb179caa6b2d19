"""The cache of a trial is prepared as asked for, and its state is verified."""

import dataclasses
import mmap
import os
import re

import numpy as np
import pyarrow as pa
import pytest

import pipeprof
from pipeprof import formats
from pipeprof.measure.environment import read_environment
from pipeprof.measure.proc_counters import read_traffic
from pipeprof.model import SweepSpec
from pipeprof.storage.page_cache import Residency, evict, residency, resident_share
from pipeprof.sweep.cache import PreparedCache, ReadMeter, Traffic, prepare, trial_cache_state
from pipeprof.sweep.plan import plan_sweep
from pipeprof.sweep.runner import run_sweep
from tests.support.requirements import missing
from tests.sweep.test_sweep import Listener

MB = 1_000_000
ROW_BYTES, ROWS, FILES = 4000, 2000, 4


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """32 MB that do not compress, on a disk."""
    folder = tmp_path_factory.mktemp("data")
    values = np.random.default_rng(1).random((ROWS, ROW_BYTES // 8))
    flat = pa.array(values.ravel())
    table = pa.record_batch({"x": pa.FixedSizeListArray.from_arrays(flat, ROW_BYTES // 8)})
    for number in range(FILES):
        encoder = formats.get("parquet").encoder(table.schema)
        (folder / f"{number}.parquet").write_bytes(encoder.write(table) + encoder.finish())
    on = residency(files_of(folder))
    if on.reason:
        missing(f"a disk of this machine's own: {on.reason}")
    return str(folder)


def files_of(folder):
    return [f"{folder}/{number}.parquet" for number in range(FILES)]


def shares_in_memory(evidence):
    """Return the percentages at the start and the end; the kernel may drop a page or two."""
    told = r"([0-9.]+) % of the pages were in memory at the start, ([0-9.]+) % at the end"
    return [float(share) for share in re.match(told, evidence).groups()]


def trial_of(data, folder, cache, workers, step_s=0.01):
    """A short trial: 16 rows a step, so at most 64 KB each 10 ms, far less than there is."""
    spec = SweepSpec(
        urls=(data,), workers=(workers,), prefetch=(2,), batch_sizes=(16,), step_s=step_s,
        trial_s=0.3, warmup_s=0.02, cache=cache,
    )  # fmt: skip
    (trial,) = run_sweep(plan_sweep(spec, folder), Listener()).result.trials
    assert pipeprof.load(folder / trial.profile).cache == trial.cache
    return trial


@pytest.mark.parametrize("workers", [0, 1])
def test_a_cold_trial_reads_from_the_disk(data, tmp_path, workers):
    cache = trial_of(data, tmp_path / "out", "cold", workers).cache
    assert cache.state == "cold", cache.evidence
    assert cache.evidence.startswith("0.0 % of the pages were in memory at the start, ")
    assert "devices moved" in cache.evidence


@pytest.mark.parametrize("workers", [0, 1])
def test_a_warm_trial_reads_from_memory(data, tmp_path, workers):
    evict(files_of(data))
    cache = trial_of(data, tmp_path / "out", "warm", workers).cache
    assert cache.state == "warm", cache.evidence
    assert shares_in_memory(cache.evidence) == pytest.approx([100, 100], abs=1), cache.evidence


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("format_name", ["parquet", "tfrecord"])
def test_small_data_that_is_read_over_and_over_stays_cold(tmp_path, format_name, workers):
    """Each trial reads the files several times, and evicts what it has read."""
    (tmp_path / "small").mkdir()
    for number in range(2):
        blobs = [np.random.default_rng(row).bytes(50_000) for row in range(40)]
        table = pa.record_batch({"x": pa.array(blobs)})
        encoder = formats.get(format_name).encoder(table.schema)
        file = tmp_path / f"small/{number}.{format_name}"
        file.write_bytes(encoder.write(table) + encoder.finish())
    if residency([str(file)]).reason:
        missing(f"a disk of this machine's own: {residency([str(file)]).reason}")
    cache = trial_of(str(file.parent), tmp_path / "out", "cold", workers, step_s=0.005).cache
    assert cache.state == "cold", cache.evidence
    trial = pipeprof.load(tmp_path / "out/trial-000.json")
    assert trial.stages["read"].bytes > 4 * file.stat().st_size, "more than two epochs"


def test_as_is_small_data_turns_warm_and_is_not_called_cold(data, tmp_path):
    os.makedirs(tmp_path / "small")
    os.link(f"{data}/0.parquet", tmp_path / "small/0.parquet")
    evict([f"{data}/0.parquet"])
    cache = trial_of(str(tmp_path / "small"), tmp_path / "out", "as-is", 0, step_s=0).cache
    assert cache.state in ("mixed", "warm")
    assert shares_in_memory(cache.evidence)[1] == pytest.approx(100, abs=1), cache.evidence


@pytest.mark.parametrize("share", [0, 1])
def test_as_is_changes_nothing(data, share):
    prepare(data, "warm" if share else "cold")
    assert prepare(data, "as-is").residency.share == pytest.approx(share, abs=0.01)
    assert resident_share(files_of(data)) == pytest.approx(share, abs=0.01)


def test_pages_that_cannot_be_evicted_are_reported(data):
    with (
        open(f"{data}/0.parquet", "rb") as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped,
    ):
        assert sum(mapped[:: mmap.PAGESIZE]) > 0
        prepared = prepare(data, "cold")
    assert prepared.residency.share == pytest.approx(1 / FILES, rel=0.01)
    cache = trial_cache_state(prepared, Counted(Traffic(MB, MB)))
    assert cache.state == "mixed"
    assert cache.evidence.endswith("not all could be evicted")


def test_files_larger_than_the_memory_are_not_warmed(data, monkeypatch):
    evict(files_of(data))
    small = dataclasses.replace(read_environment(""), ram_bytes=MB)
    monkeypatch.setattr("pipeprof.sweep.cache.read_environment", lambda accelerator: small)
    assert prepare(data, "warm").residency.share == 0


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/data", "memory://data"])
def test_caches_behind_a_service_are_unknown(url):
    cache = trial_cache_state(prepare(url, "cold"), Counted(Traffic(MB, 0)))
    assert cache.state == "unknown"
    assert cache.evidence == f"caches behind {url.partition(':')[0]}:// cannot be observed"


def test_files_in_memory_are_warm_whatever_is_asked():
    reason = "tmpfs holds its files in memory"
    assert (
        trial_cache_state(PreparedCache("cold", (), Residency(1.0, reason)), Counted(None)).state
        == "warm"
    )


class Counted(ReadMeter):
    """A meter that has counted ``read`` after warm-up."""

    def __init__(self, read):
        super().__init__(0)
        if read is not None:
            self._after_warmup, self._at_end = Traffic(0, 0), read


@pytest.mark.parametrize(
    ("start", "read", "state"),
    [
        (0.00, Traffic(10 * MB, 10 * MB), "cold"),
        (0.01, Traffic(10 * MB, 9 * MB), "cold"),
        (0.02, Traffic(10 * MB, 10 * MB), "mixed"),
        (0.00, Traffic(10 * MB, 8 * MB), "mixed"),
        (0.00, Traffic(10 * MB, 1 * MB), "warm"),
        (1.00, Traffic(10 * MB, 0), "warm"),
        (0.00, Traffic(1000, 0), "cold"),  # too little to tell: still nothing is in memory
        (0.00, None, "cold"),
        (1.00, None, "warm"),
        (0.50, None, "mixed"),
        (None, Traffic(10 * MB, 10 * MB), "cold"),
        (None, Traffic(10 * MB, 0), "warm"),
        (None, Traffic(10 * MB, 5 * MB), "mixed"),
        (None, None, "unknown"),
    ],
)
def test_the_state_follows_what_devices_moved(data, start, read, state):
    evict(files_of(data))
    assert (
        trial_cache_state(
            PreparedCache("as-is", tuple(files_of(data)), Residency(start)), Counted(read)
        ).state
        == state
    )


def test_the_meter_counts_what_this_process_reads(data):
    evict(files_of(data))
    size = os.path.getsize(f"{data}/0.parquet")
    meter = ReadMeter(workers=0)
    read_all(f"{data}/0.parquet")
    meter.end_warmup()
    for _ in range(9):
        read_all(f"{data}/0.parquet")
    meter.end()
    read, when = meter.traffic()
    assert when == "while measuring"
    assert read.logical == pytest.approx(9 * size, rel=0.01)
    assert read.physical < 0.01 * size

    meter.end_warmup()
    meter.end()
    read, when = meter.traffic()
    assert when == "in the trial", "nothing was read after warm-up"
    assert read.logical == pytest.approx(10 * size, rel=0.01)
    assert read.physical == pytest.approx(size, rel=0.1)


def test_read_ahead_before_the_end_of_warmup_is_not_taken_for_warm():
    """A device read 8 MB ahead before the end of warm-up, and the trial read only these."""
    meter = ReadMeter(workers=0)
    meter._at_start, meter._after_warmup = Traffic(0, 0), Traffic(1 * MB, 8 * MB)
    meter._at_end = Traffic(8 * MB, 8 * MB)
    assert meter.traffic() == (Traffic(8 * MB, 8 * MB), "in the trial")


def read_all(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def test_a_kernel_that_does_not_count(monkeypatch):
    monkeypatch.setattr("pipeprof.sweep.cache.read_traffic", lambda pid: None)
    meter = ReadMeter(workers=0)
    meter.end_warmup()
    meter.end()
    assert meter.traffic() is None


def test_a_process_that_is_gone_has_no_counters():
    assert read_traffic(2**22 + 1) is None


def test_workers_that_are_gone_are_not_counted():
    meter = ReadMeter(workers=1)
    meter.end_warmup()
    meter.end()
    assert meter.traffic() is None
