"""Which part of storage is to blame: named where the evidence carries it, and not where it does
not."""

from dataclasses import replace
from math import nan

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import DataSource, LoneRequests, Profile, RequestLog
from tests.analyze.pipelines import inline_run
from tests.analyze.runs import found, seen
from tests.analyze.test_requests import MS, in_turn, log_of

BLOCKS = [8 << 20] * 40
VARIED = [100_000 * (1 + n % 10) for n in range(40)]


def starved_by_reading(log: RequestLog, lone: LoneRequests | None = None, **rows: float) -> Profile:
    """A run whose batches take 20 ms to read and 1 ms to decode, four requests to five of them."""
    run = inline_run(read_s=20 * MS, decode_s=1 * MS, collate_s=0, other_s=0)
    rows = {"bytes": 0.8 * log.bytes / log.count, "requests": 0.8, **rows}
    return assemble(replace(seen(run, **rows), requests=log, lone_requests=lone))


def waited(log: RequestLog, cpu_share: float) -> RequestLog:
    return replace(log, store_s=log.seconds, store_cpu_s=cpu_share * log.seconds)


def codes(profile: Profile) -> set[str]:
    return {finding.code for finding in profile.findings}


def test_a_client_that_computes_is_to_blame_whatever_the_store_does():
    profile = starved_by_reading(waited(log_of(*in_turn([4000] * 40, 1 * MS, 1e9)), 0.9))
    assert profile.diagnosis.bottleneck == "storage-client"
    assert profile.diagnosis.evidence.startswith("the client spends 904 µs of CPU on a request")
    assert "limited by the storage's client" in profile.diagnosis.headline
    # of batches of 32 samples
    assert profile.ceilings["storage-client"].samples_per_s == pytest.approx(
        32 / (0.8 * 0.9 * 1.004 * MS)
    )
    assert codes(profile) & {"s3-client-bound", "storage-wait"} == {"s3-client-bound"}


def test_copying_files_from_memory_is_no_client():
    log = waited(log_of(*in_turn(VARIED, 0.0, 5e9)), 0.98)
    rows = {"logical_bytes": 500_000.0, "physical_bytes": 0.0, "runqueue_s": 0.0}
    profile = starved_by_reading(log, **rows)
    assert profile.diagnosis.bottleneck == "read"
    assert "not a wait for storage" in profile.diagnosis.evidence
    # our own data set knows where its bytes are
    run = inline_run(read_s=20 * MS, decode_s=1 * MS, collate_s=0, other_s=0)
    for url, part in (("/data", "read"), ("s3://bucket/data", "storage-client")):
        source = DataSource(url, "csv", 1, 10**9)
        profile = assemble(replace(run, requests=log, source=source))
        assert profile.diagnosis.bottleneck == part


@pytest.mark.parametrize(
    ("first_byte", "part"), [(0.9, "storage-latency"), (0.1, "storage-bandwidth"), (0.5, "read")]
)
def test_the_first_byte_tells_waiting_from_flowing(first_byte, part):
    requests = [(n * 0.5, n * 0.5 + first_byte * 0.4, n * 0.5 + 0.4, 8 << 20) for n in range(40)]
    profile = starved_by_reading(waited(log_of(*requests), 0.05))
    assert profile.diagnosis.bottleneck == part
    if part != "read":
        ceilings = profile.ceilings
        # one maker of batches, one request at a time, batches of 32 samples
        assert ceilings["storage-latency"].samples_per_s == pytest.approx(
            32 / (0.8 * 0.4 * first_byte)
        )
        assert ceilings["storage-bandwidth"].samples_per_s == pytest.approx(
            32 / (0.8 * 0.4 * (1 - first_byte))
        )


@pytest.mark.parametrize(
    ("latency_s", "bandwidth", "part", "code"),
    [
        (20 * MS, 1e9, "storage-latency", "storage-latency-bound"),
        (1 * MS, 20e6, "storage-bandwidth", "storage-bandwidth-bound"),
    ],
)
def test_sizes_that_vary_tell_them_apart(latency_s, bandwidth, part, code):
    profile = starved_by_reading(waited(log_of(*in_turn(VARIED, latency_s, bandwidth)), 0.05))
    assert profile.diagnosis.bottleneck == part
    assert codes(profile) & {
        "storage-latency-bound", "storage-bandwidth-bound", "storage-wait"
    } == {code}  # fmt: skip
    ceilings = profile.ceilings
    assert ceilings["storage-latency"].samples_per_s == pytest.approx(32 / (0.8 * latency_s))
    assert ceilings["storage-bandwidth"].samples_per_s == pytest.approx(
        32 / (0.8 * 550_000 / bandwidth)
    )


def test_requests_that_may_wait_for_each_other_tell_no_latency_by_their_sizes():
    """Two at a time, of which a small one takes as long as the large one before it."""
    sizes = [(2 << 20) if n % 2 else 4096 for n in range(40)]
    pairs = [(n // 2 * 0.1, nan, n // 2 * 0.1 + 0.1 + n % 3 * 1e-5, size)
             for n, size in enumerate(sizes)]  # fmt: skip
    log = waited(log_of(*pairs), 0.05)
    profile = starved_by_reading(log)
    assert profile.requests.fit.latency_share_interval[0] > 0.9
    assert profile.diagnosis.bottleneck == "read"
    assert "or waiting for each other's bytes" in profile.diagnosis.evidence
    alone = LoneRequests(4096, 0.1 * MS, 2 << 20, 100 * MS, 9)
    assert starved_by_reading(log, alone).diagnosis.bottleneck == "storage-bandwidth"


def test_equal_requests_alone_do_not_tell():
    """10 ms each: an answer that is late, or a full link. One run looks the same either way."""
    profile = starved_by_reading(waited(log_of(*in_turn([1 << 20] * 40, 0.0, 100e6)), 0.05))
    assert profile.diagnosis.bottleneck == "read"
    assert "one run cannot tell latency from bandwidth here" in profile.diagnosis.evidence
    assert not {"storage-latency", "storage-bandwidth"} & set(profile.ceilings)


@pytest.mark.parametrize(
    ("lone", "part"),
    [
        # 9.9 ms are waiting, whatever the size
        (LoneRequests(4096, 9.9 * MS, 8 << 20, 15 * MS, 9), "storage-latency"),
        # 0.1 ms are waiting, the rest is bytes
        (LoneRequests(4096, 0.1 * MS, 8 << 20, 84 * MS, 9), "storage-bandwidth"),
        # alone it takes 1 ms, most of it waiting; but together they move what one alone does
        (LoneRequests(4096, 0.6 * MS, 2 << 20, 16 * MS, 9), "storage-bandwidth"),
        # alone it takes a tenth of the time, and nobody knows what the others wait for
        (LoneRequests(4096, 0.9 * MS, 8 << 20, 1.7 * MS, 9), "read"),
    ],
)
def test_lone_requests_settle_it(lone, part):
    log = waited(log_of(*in_turn([1 << 20] * 40, 0.0, 1.05e8)), 0.05)
    profile = starved_by_reading(log, lone)
    assert profile.diagnosis.bottleneck == part
    assert "alone, a request of 1.05 MB takes" in profile.diagnosis.evidence


def test_what_fills_no_link_waits_for_answers_and_what_takes_seconds_does_not():
    tiny = starved_by_reading(waited(log_of(*in_turn([4000] * 40, 3 * MS, 1e9)), 0.05))
    assert tiny.diagnosis.bottleneck == "storage-latency"
    assert "which fills no link" in tiny.diagnosis.evidence
    slow = starved_by_reading(waited(log_of(*in_turn(BLOCKS, 0.0, 6e6)), 0.05))
    assert slow.diagnosis.bottleneck == "storage-bandwidth"
    assert "longer than a storage takes to answer" in slow.diagnosis.evidence


def test_what_was_not_seen_is_not_judged():
    run = inline_run(read_s=20 * MS, decode_s=1 * MS, collate_s=0, other_s=0)
    unseen = assemble(run)
    assert unseen.diagnosis.bottleneck == "read"
    assert unseen.requests is None
    few = starved_by_reading(log_of(*in_turn([4000] * 4, 3 * MS, 1e9)))
    assert few.diagnosis.bottleneck == "read"
    assert "4 requests are too few" in few.diagnosis.evidence


def test_where_reading_is_not_to_blame_storage_is_not_spoken_of():
    log = waited(log_of(*in_turn(VARIED, 20 * MS, 1e9)), 0.05)
    decoding = assemble(replace(inline_run(), requests=log))
    assert decoding.diagnosis.bottleneck == "decode"
    assert decoding.diagnosis.evidence == ""
    assert "storage-latency" in decoding.ceilings, "it is a ceiling all the same"


def test_cores_that_are_short_hide_how_busy_the_client_is():
    """It computes half of the time, and waits for a core in most of the rest."""
    log = waited(log_of(*in_turn([1 << 20] * 40, 0.0, 1e8)), 0.45)
    short = starved_by_reading(log, cpu_s=0.009, runqueue_s=0.008)
    assert short.diagnosis.bottleneck == "storage-client"
    idle = starved_by_reading(log, cpu_s=0.009, runqueue_s=0.0)
    assert idle.diagnosis.bottleneck == "read"


def test_a_core_that_is_missing_most_of_the_time_hides_everything_else():
    log = waited(log_of(*in_turn([4000] * 40, 20 * MS, 1e9)), 0.05)
    profile = starved_by_reading(replace(log, looked_s=1.0, waited_s=0.6))
    assert profile.requests.core_wait_share == 0.6
    assert profile.diagnosis.bottleneck == "read"
    assert "60 % of the time in which storage is read, a core" in profile.diagnosis.evidence
    computing = starved_by_reading(replace(waited(log, 0.25), looked_s=1.0, waited_s=0.6))
    assert computing.diagnosis.bottleneck == "storage-client"
    assert "not counting the 60 % in which it waits for a core" in computing.diagnosis.evidence
    hardly = starved_by_reading(replace(waited(log, 0.15), looked_s=1.0, waited_s=0.95))
    assert hardly.diagnosis.bottleneck == "read", "too little is left to judge by"


def test_more_workers_are_promised_no_gain_where_the_storage_may_be_full():
    run = seen(inline_run(read_s=20 * MS, decode_s=1 * MS, collate_s=0, other_s=0), runqueue_s=0.0)
    late = waited(log_of(*in_turn(VARIED, 20 * MS, 1e9)), 0.05)
    full = waited(log_of(*in_turn(VARIED, 1 * MS, 20e6)), 0.05)
    for log, doubt in ((late, False), (full, True)):
        advice, *more = assemble(replace(run, requests=log)).recommendations
        assert advice.setting == "num_workers"
        assert (advice.predicted_samples_per_s is None) == doubt
        assert ("use all of the storage's bandwidth" in advice.why) == doubt
        assert [other.setting for other in more] == ["storage bandwidth"] * doubt


def test_a_fix_speaks_of_the_present_settings():
    log = waited(log_of(*in_turn([4000] * 40, 20 * MS, 1e9)), 0.05)
    run = seen(inline_run(read_s=20 * MS, decode_s=1 * MS, collate_s=0, other_s=0), runqueue_s=0.0)
    text = found(replace(run, requests=log))["storage-latency-bound"]
    assert "instead of 0: more requests wait at the same time" in text
    assert "Read more at once" in text
    assert "nan" not in text
