"""What a worker's time goes into while it makes a batch."""

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

_COMPUTES = 0.7
"""Of the work for a batch is CPU time: what is short is computing."""
_CACHED = 0.1
"""Of the bytes that were read, moved by a device."""
_PER_SAMPLE_S = 50e-6
"""To index a sample takes less; what takes longer does something else."""
_ENOUGH_BYTES = 16e6
"""Read in the sampled batches: below it, the cache does not matter."""


def _fetching_to_blame(facts: Facts) -> bool:
    """And not only that of a few slow batches."""
    to_blame = facts.starved and facts.blamed_on_workers >= TO_BLAME
    return to_blame and not stalled_by_slow_batches(facts)


def _waits(facts: Facts) -> bool:
    """Whether a worker spends its time waiting for something other than a core."""
    # a library's own threads are waited for, too, while they compute
    waits = facts.share(BLOCKED) >= MOSTLY and not facts.share(NATIVE) >= facts.share(BLOCKED) / 2
    return waits and _fetching_to_blame(facts)


@case("storage-wait")
def storage_wait(facts: Facts) -> Figures | None:
    """A worker waits for requests that were seen, and it is not known what of storage for.

    Seen by a worker that is blocked for half or more of the time to make a batch, and by its
    requests. Cured by waiting in parallel (more workers, larger requests) or by a nearer storage.
    `pipeprof probe` tells what the storage can give.
    """
    requests = facts.requests_per_batch
    if not _waits(facts) or not requests > 0 or facts.diagnosis.bottleneck in STORAGE_PARTS:
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
def unseen_wait(facts: Facts) -> Figures | None:
    """A worker waits, and for what cannot be seen.

    Seen by a worker that is neither computing nor queued for a core for half or more of its time,
    and of which no request was seen: a network, a disk, a lock, a sleep. Cured by more workers;
    `pipeprof.stage` around its parts tells which one waits.
    """
    if not _waits(facts) or facts.summary.sums["requests"]:
        return None
    total_s = {str(stage): facts.summary.stages[str(stage)].total
               for stage in (Stage.READ, Stage.DECODE, Stage.TRANSFORM)}  # fmt: skip
    longest = max(total_s, key=total_s.__getitem__)
    return {"blocked": facts.share(BLOCKED), "part": longest if total_s[longest] else None}


def _computes(facts: Facts) -> bool:
    computes = facts.cpu_s >= _COMPUTES * facts.work_s > 0
    return computes and _fetching_to_blame(facts) and not cores_are_contended(facts)


def _decoding(facts: Facts) -> float:
    """0..1 of making a batch."""
    return facts.stage_s(Stage.DECODE) / facts.made_s if facts.made_s else 0.0


def _cores_are_full(facts: Facts) -> bool:
    return facts.wanted_workers is None and cores_are_the_limit(facts)


@case("decode-bound")
def decoding(facts: Facts) -> Figures | None:
    """Decoding is most of the work, and it computes.

    Seen by the stage `decode`, half or more of making a batch, and by CPU time. Cured by workers
    while there are cores, and by a format that is cheaper to decode: `pipeprof sweep --formats`
    measures it on your data.
    """
    share = _decoding(facts)
    if not _computes(facts) or not share >= MOSTLY:
        return None
    return {"share": share, "full": _cores_are_full(facts)}


@case("compute-bound")
def computing(facts: Facts) -> Figures | None:
    """Making a batch computes, whatever it is that it computes.

    Seen by CPU time of 70 % or more of the work, without most of it being `decode`. Cured by
    workers while there are cores, and by cheaper transforms, or results that are kept.
    """
    if not _computes(facts) or _decoding(facts) >= MOSTLY:
        return None
    return {"full": _cores_are_full(facts)}


@case("no-getitems")
def no_getitems(facts: Facts) -> Figures | None:
    """A data set of tensors or arrays has no `__getitems__`, as torch's `TensorDataset` has none.

    Seen by a map-style data set that holds its data, reads nothing, and takes at most 50 µs for a
    sample, while fetch and collate are half or more of the loop, or of what a worker does. torch's
    `TensorDataset` is timed after the run, sample by sample and by one index; a data set of the
    user's is not called. Cured by `__getitems__`, which torch gives all indices of a batch.
    """
    indexing, sums = facts.recording.indexing, facts.summary.sums
    reads = sums["bytes"] > 0 or sums["logical_bytes"] >= _ENOUGH_BYTES
    indexes = facts.samples > 1 and facts.work_s <= _PER_SAMPLE_S * facts.samples
    busy = facts.made_s >= MOSTLY * max(1, facts.workers) * facts.cycle_s
    if indexing is None or not facts.starved or reads or not indexes or not busy:
        return None
    if indexing.one_by_one_s is None or not indexing.at_once_s:
        return {}
    gain = indexing.one_by_one_s / indexing.at_once_s
    return {"gain": gain} if gain >= LEAST_GAIN else None


@case("page-cache-flatters")
def page_cache(facts: Facts) -> Figures | None:
    """The bytes came from memory, which will not always be so.

    Seen by physical bytes, a tenth of the logical ones or less. Network and FUSE file systems move
    bytes without saying so: there, however, reading blocks, and nothing is said. Cured by measuring
    with a cold cache, or on more data than there is memory.
    """
    sums, source, free = facts.summary.sums, facts.recording.source, facts.main.available_bytes
    read, moved = sums["logical_bytes"], sums["physical_bytes"]
    if not (read >= _ENOUGH_BYTES and moved <= _CACHED * read and facts.share(BLOCKED) <= 0.1):
        return None
    in_all = source.bytes if source is not None and free is not None else None
    return {
        "read": read,
        "moved": moved,
        "in_all": in_all,
        "free": free,
        "fits": in_all is not None and free is not None and in_all < free,
    }
