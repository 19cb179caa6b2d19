"""Findings about how a worker spends its time on a batch."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.findings.cores import cores_are_contended
from pipeprof.analyze.advice.findings.order import stalled_by_slow_batches
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import cores_are_the_limit
from pipeprof.analyze.profile.stage_times import BLOCKED, NATIVE
from pipeprof.analyze.thresholds import LEAST_GAIN, MOSTLY, SMALL_REQUEST, TO_BLAME
from pipeprof.model import STORAGE_PARTS, Stage

_LEAST_COMPUTING_SHARE = 0.7
"""Share of CPU time in the work for a batch from which on computing is the limit."""
_MOST_DEVICE_SHARE = 0.1
"""Largest share of the bytes read that a device moved if the rest came from the cache."""
_MOST_INDEXING_S = 50e-6
"""Seconds per sample. Indexing takes less; a longer time is spent on something else."""
_LEAST_BYTES_READ = 16e6
"""Bytes read in the sampled batches below which the cache does not matter."""


def _building_is_slow(facts: Facts) -> bool:
    """Return whether building most batches, not just a few slow ones, causes the stall."""
    slow = facts.starved and facts.blamed_on_workers >= TO_BLAME
    return slow and not stalled_by_slow_batches(facts)


def _mostly_blocked(facts: Facts) -> bool:
    """Return whether a worker mostly waits for something other than a core."""
    # a worker that waits for its own native threads is blocked, too, but they compute
    native = facts.share(NATIVE) >= facts.share(BLOCKED) / 2
    return facts.share(BLOCKED) >= MOSTLY and not native and _building_is_slow(facts)


def _waits_for_requests(facts: Facts) -> bool:
    """Return whether a worker's recorded requests explain why it is blocked."""
    blocked_s, read_s = facts.share(BLOCKED) * facts.made_s, facts.stage_s(Stage.READ)
    # requests in threads of a client take no time of the stage
    return facts.requests_per_batch > 0 and not 0 < read_s < blocked_s / 2


@case("storage-wait")
def storage_wait(facts: Facts) -> Figures | None:
    """A worker waits for its storage requests; whether latency or bandwidth limits them is unknown.

    Reported when a worker is blocked for 50 % or more of the time to build a batch, and reads in
    half of that time or more. Its requests were recorded.

    Fix: wait in parallel (more workers), make larger requests, or use a nearer storage.
    `pipeprof probe` measures what the storage can give.
    """
    requests, part = facts.requests_per_batch, facts.diagnosis.bottleneck
    if not _mostly_blocked(facts) or not _waits_for_requests(facts) or part in STORAGE_PARTS:
        return None
    size = facts.summary.sums["bytes"] / facts.summary.sums["requests"]
    waited_s = facts.share(BLOCKED) * facts.made_s
    return {
        "blocked": facts.share(BLOCKED),
        "size": size,
        "each_s": waited_s / requests,
        "moved": size * requests / waited_s,
        "small": size < SMALL_REQUEST,
    }


@case("workers-wait")
def unexplained_wait(facts: Facts) -> Figures | None:
    """A worker waits for something that was not recorded: a network, a disk, a lock, a sleep.

    Reported when a worker is blocked for 50 % or more of the time to build a batch, and its
    recorded requests, if any, take less than half of that.

    Fix: use more workers. `pipeprof.stage` around parts of the data set shows which one waits.
    """
    if not _mostly_blocked(facts) or _waits_for_requests(facts):
        return None
    total_s = {str(stage): facts.summary.stages[str(stage)].total
               for stage in (Stage.READ, Stage.DECODE, Stage.TRANSFORM)}  # fmt: skip
    longest = max(total_s, key=total_s.__getitem__)
    return {"blocked": facts.share(BLOCKED), "part": longest if total_s[longest] else None}


def _mostly_computing(facts: Facts) -> bool:
    computing = facts.cpu_s >= _LEAST_COMPUTING_SHARE * facts.work_s > 0
    return computing and _building_is_slow(facts) and not cores_are_contended(facts)


def _decode_share(facts: Facts) -> float:
    """Return the share of decoding in the time to build a batch, 0..1."""
    return facts.stage_s(Stage.DECODE) / facts.made_s if facts.made_s else 0.0


def _cores_are_full(facts: Facts) -> bool:
    return facts.wanted_workers is None and cores_are_the_limit(facts)


@case("decode-bound")
def decoding(facts: Facts) -> Figures | None:
    """Most of the work for a batch is decoding, which computes.

    Reported when the stage `decode` takes 50 % or more of the time to build a batch, and CPU time
    is 70 % or more of the work.

    Fix: use more workers while there are free cores, or a format that is cheaper to decode.
    `pipeprof sweep --formats` measures formats on your data.
    """
    share = _decode_share(facts)
    if not _mostly_computing(facts) or not share >= MOSTLY:
        return None
    return {"share": share, "full": _cores_are_full(facts)}


@case("compute-bound")
def computing(facts: Facts) -> Figures | None:
    """Most of the work for a batch is computing, but not decoding.

    Reported when CPU time is 70 % or more of the work for a batch, and `decode` takes less than
    50 % of the time.

    Fix: use more workers while there are free cores, or cheaper transforms. Or keep results that
    are computed again and again.
    """
    if not _mostly_computing(facts) or _decode_share(facts) >= MOSTLY:
        return None
    return {"full": _cores_are_full(facts)}


@case("no-getitems")
def no_getitems(facts: Facts) -> Figures | None:
    """A data set in memory has no `__getitems__`, so torch indexes it one sample at a time.

    Reported for a map-style data set that holds its data, reads nothing, and takes at most 50 µs
    per sample. Fetching and collating must also take 50 % or more of the loop or of a worker's
    time. torch's `TensorDataset` is timed after the run, sample by sample and with one index;
    your own data set is not called.

    Fix: add `__getitems__`, which receives all indices of a batch from torch.
    """
    indexing, sums = facts.recording.indexing, facts.summary.sums
    reads = sums["bytes"] > 0 or sums["logical_bytes"] >= _LEAST_BYTES_READ
    indexes = facts.samples > 1 and facts.work_s <= _MOST_INDEXING_S * facts.samples
    busy = facts.made_s >= MOSTLY * max(1, facts.workers) * facts.cycle_s
    if indexing is None or not facts.starved or reads or not indexes or not busy:
        return None
    if indexing.one_by_one_s is None or not indexing.at_once_s:
        return {}
    gain = indexing.one_by_one_s / indexing.at_once_s
    return {"gain": gain} if gain >= LEAST_GAIN else None


@case("page-cache-flatters")
def page_cache(facts: Facts) -> Figures | None:
    """The data came from the page cache, which will not always hold it.

    Reported when devices moved at most 10 % of the bytes that workers read. Network and FUSE file
    systems do not report moved bytes. Reading from them blocks, so nothing is reported when a
    worker is blocked for more than 10 % of its time.

    Fix: measure with a cold cache, or on more data than there is memory.
    """
    sums, source, free = facts.summary.sums, facts.recording.source, facts.main.available_bytes
    read, moved = sums["logical_bytes"], sums["physical_bytes"]
    cached = read >= _LEAST_BYTES_READ and moved <= _MOST_DEVICE_SHARE * read
    if not cached or not facts.share(BLOCKED) <= 0.1:
        return None
    in_all = source.bytes if source is not None and free is not None else None
    return {
        "read": read,
        "moved": moved,
        "in_all": in_all,
        "free": free,
        "fits": in_all is not None and free is not None and in_all < free,
    }
