"""Whether waits share a rate, on made-up batches: what they wait for is known, nothing is timed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.limited_rate import limited_stage, saves_up
from tests.analyze.pipelines import workers_run
from tests.analyze.test_blame import log

SEEDS = range(12)


def batches(makers, count=200, **extra):
    """``makers``: of each worker, (start, end, read seconds) of its batches."""
    rows = sorted((*batch, worker) for worker, made in enumerate(makers) for batch in made)[:count]
    start, end, read, worker = map(np.array, zip(*rows, strict=True))
    moments = {"asked_s": start, "delivered_s": end, "done_s": end}
    return log(
        **moments, fetch_start_s=start, fetch_end_s=end, worker=worker.astype(float),
        **{"read_s": read, "read_cpu_s": np.zeros(len(read)), "cpu_s": 0.001 + 0 * read,
           "runqueue_s": 0 * read, **extra},
    )  # fmt: skip


def private(chance, workers, count=80):
    """Each wait is its own, however many wait."""
    made = []
    for _ in range(workers):
        now, own = chance.random() * 0.01, []
        for _ in range(count):
            other, read = chance.uniform(0.001, 0.02), chance.lognormvariate(-4.6, 0.3)
            own.append((now, now + read + 0.001, read))
            now += read + 0.001 + other
        made.append(own)
    return made


def shared(chance, workers, count=80, size=0.01):
    """Who waits at once shares one rate: by small steps of time."""
    step, now = 0.0005, 0.0
    left = [0.0] * workers
    begun, rest = [0.0] * workers, [chance.uniform(0, 0.02) for _ in range(workers)]
    made = [[] for _ in range(workers)]
    while min(map(len, made)) < count:
        reading = [worker for worker in range(workers) if left[worker] > 0]
        for worker in reading:
            left[worker] -= step / len(reading)
            if left[worker] <= 0:
                took = now + step - begun[worker]
                made[worker].append((begun[worker], now + step + 0.0001, took))
                rest[worker] = chance.uniform(0, 0.04)
        for worker in range(workers):
            if left[worker] <= 0:
                rest[worker] -= step
                if rest[worker] <= 0:
                    left[worker], begun[worker] = size * chance.uniform(0.7, 1.3), now + step
        now += step
    return made


def quota(chance, count=120, size=0.01):
    """One maker: what is not asked of the quota while it does something else, it has later."""
    now, granted, own = 0.0, 0.0, []
    for _ in range(count):
        granted += size
        ready = max(now + 0.0002, granted)
        own.append((now, ready + 0.0001, ready - now))
        now = ready + chance.uniform(0.001, 0.008)
    return [own]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_waits_of_their_own_are_not_taken_for_a_shared_rate(workers, seed):
    assert limited_stage(batches(private(Random(seed), workers))) is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workers", [2, 4])
def test_workers_that_share_a_rate_are_told(workers, seed):
    assert limited_stage(batches(shared(Random(seed), workers))) == "read"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quota_is_told_of_a_single_maker(seed):
    assert limited_stage(batches(quota(Random(seed)))) == "read"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_single_maker_shows_whether_its_storage_saves_up(seed):
    assert saves_up(batches(quota(Random(seed))))
    assert not saves_up(batches(private(Random(seed), 1)))


LUMP_S = 0.1


def lumps(chance, workers, batches_a_lump=16, count=200):
    """Whoever comes when the lump is used up waits for the next one."""
    now = [0.001 * worker for worker in range(workers)]
    made, used, lump = [[] for _ in now], 0, 0
    for _ in range(count):
        worker = min(range(workers), key=lambda each: now[each])
        begun = now[worker]
        if int(begun / LUMP_S) > lump:
            used, lump = 0, int(begun / LUMP_S)
        if used == batches_a_lump:
            used, lump = 0, lump + 1
        used += 1
        read = max(0.0, lump * LUMP_S - begun) + chance.uniform(0.001, 0.002)
        made[worker].append((begun, begun + read + 0.001, read))
        now[worker] = begun + read + 0.001 + chance.uniform(0, 0.002)
    return made


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("workers", "batches_a_lump"), [(1, 2), (1, 16), (2, 16), (4, 16)])
def test_a_quota_in_lumps_is_told(workers, batches_a_lump, seed):
    made = batches(lumps(Random(seed), workers, batches_a_lump))
    assert limited_stage(made.replaced(bytes=np.full(len(made), 1e5))) == "read"


def long_ones(made):
    return made.read_s > 4 * np.median(made.read_s)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_group_now_and_then_is_no_lump(seed):
    """The batch that waits has its bytes, and the others have none to read."""
    made = batches(lumps(Random(seed), 1))
    read = made.replaced(bytes=np.where(long_ones(made), 16e5, 1e3))
    assert limited_stage(read) is None
    assert limited_stage(made) is None, "nor is anything told where bytes are not known"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bytes_that_a_process_read_serve_where_its_data_set_counts_none(seed):
    made = batches(lumps(Random(seed), 1))
    assert limited_stage(made.replaced(logical_bytes=np.full(len(made), 1e5))) == "read"
    read = made.replaced(logical_bytes=np.where(long_ones(made), 16e5, 1e3))
    assert limited_stage(read) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_long_tail_is_no_quota(seed):
    chance = Random(seed)
    made, now = [], 0.0
    for _ in range(300):
        read = 0.001 * (80 if chance.random() < 1 / 16 else 1)
        made.append((now, now + read + 0.001, read))
        now += read + 0.002
    tail = batches([made], count=300)
    assert limited_stage(tail.replaced(bytes=np.full(300, 1e5))) is None


def profile_of(made, late_s):
    """Main asks for each batch ``late_s`` after it was fetched, and has it 2 ms later."""
    kept = {name: tuple(map(float, made._arrays[name])) for name in (
        "fetch_start_s", "fetch_end_s", "read_s", "read_cpu_s", "decode_s", "cpu_s", "runqueue_s",
        "worker",
    )}  # fmt: skip
    kept["worker"] = tuple(map(int, kept["worker"]))
    asked = tuple(max(0.0, end + late_s) for end in kept["fetch_end_s"])
    delivered = tuple(moment + 0.002 for moment in asked)
    moments = {"asked_s": asked, "delivered_s": delivered, "done_s": (*asked[1:], delivered[-1])}
    recording = workers_run(len(made), workers=4)
    log = replace(recording.batches, **kept, **moments, sent_s=(), received_s=(), arrived_s=())
    return assemble(replace(recording, batches=log))


def test_the_report_says_so_and_advises_no_more_workers():
    profile = profile_of(batches(shared(Random(0), 4)), late_s=-0.002)
    assert profile.diagnosis.bottleneck == "read"
    assert "a rate that all readers share" in profile.diagnosis.headline
    assert all("num_workers" not in advice.setting for advice in profile.recommendations)
    assert profile.worth["read"].cheaper.share > 0.15


def test_a_shared_rate_limits_nothing_while_workers_are_ahead():
    profile = profile_of(batches(shared(Random(0), 4)), late_s=0.5)
    assert profile.diagnosis.bottleneck != "read"
    assert "a rate that all readers share" not in profile.diagnosis.headline


def test_what_computes_shares_cores_and_not_a_rate():
    busy = batches(shared(Random(0), 4))
    computing = busy.replaced(read_cpu_s=busy.read_s)
    assert limited_stage(computing) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_black_box_that_reads_files_shares_a_rate_too(seed):
    """Its reads are observed, but not their CPU time."""
    made = batches(shared(Random(seed), 4))
    assert limited_stage(made.replaced(read_cpu_s=np.full(len(made), np.nan))) == "read"


@pytest.mark.parametrize("waits", ["cpu_s", "runqueue_s"])
def test_a_black_box_that_computes_shares_cores_and_not_a_rate(waits):
    """Its reads come from memory, and last as long as others use the cores."""
    busy = batches(shared(Random(0), 4))
    unknown, whole = np.full(len(busy), np.nan), busy.fetch_end_s - busy.fetch_start_s
    assert limited_stage(busy.replaced(read_cpu_s=unknown, **{waits: 0.9 * whole})) is None


def test_of_few_batches_nothing_is_told():
    assert limited_stage(batches(quota(Random(0)), count=30)) is None
