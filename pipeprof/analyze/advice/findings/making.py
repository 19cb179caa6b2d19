"""What a worker's time goes into while it makes a batch."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.findings.cores import cores_are_contended
from pipeprof.analyze.advice.findings.order import stalled_by_slow_batches
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.roofline_estimate import cores_are_the_limit, helpful_workers
from pipeprof.analyze.profile.stage_times import BLOCKED, NATIVE
from pipeprof.analyze.thresholds import LEAST_GAIN
from pipeprof.model import STORAGE_PARTS, Stage
from pipeprof.units import counted, format_bytes, format_duration, format_rate, percent

_MOSTLY = 0.5
_TO_BLAME = 0.25
"""Of the stall."""
_SMALL_REQUEST = 4e6
"""Bytes below which a request's latency outweighs its transfer on any storage worth its name."""
_CACHED = 0.1
"""Of the bytes that were read, moved by a device."""
_PER_SAMPLE_S = 50e-6
"""To index a sample takes less; what takes longer does something else."""
_ENOUGH_BYTES = 16e6
"""Read in the sampled batches: below it, the cache does not matter."""


def _to_blame(facts: Facts) -> bool:
    return facts.starved and facts.blamed_on_workers >= _TO_BLAME


def _more_hands(facts: Facts, do: str = "Wait") -> str:
    """What more workers would do; empty when they would do nothing."""
    wanted = helpful_workers(facts)
    return f"{do} in parallel: num_workers={wanted} instead of {facts.workers}. " if wanted else ""


def waits(facts: Facts) -> bool:
    """Whether a worker spends its time waiting for something other than a core."""
    # a library's own threads are waited for, too, while they compute
    waits = facts.share(BLOCKED) >= _MOSTLY and not facts.share(NATIVE) >= facts.share(BLOCKED) / 2
    return waits and _to_blame(facts) and not stalled_by_slow_batches(facts)


@case("storage-wait", "Workers wait for storage")
def storage_wait(facts: Facts) -> Seen | None:
    """A worker waits for requests that were seen, and it is not known what of storage for.

    Seen by a worker that is blocked for half or more of the time to make a batch, and by its
    requests. Cured by waiting in parallel (more workers, larger requests) or by a nearer storage.
    `pipeprof probe` tells what the storage can give.
    """
    requests = facts.per_batch(facts.summary.sums["requests"])
    if not waits(facts) or not requests > 0 or facts.diagnosis.bottleneck in STORAGE_PARTS:
        return None
    size = facts.summary.sums["bytes"] / facts.summary.sums["requests"]
    waited_s = facts.share(BLOCKED) * facts.made_s
    small = size < _SMALL_REQUEST
    larger = "Ask for more at once: many samples in one file or shard, larger reads. "
    return Seen(
        f"To make a batch {facts.maker} is blocked {percent(facts.share(BLOCKED))} of "
        f"{format_duration(facts.made_s)}. It makes {counted(requests, 'request')} of "
        f"{format_bytes(size)}, {format_duration(waited_s / requests)} each: "
        f"{format_rate(size * requests / waited_s)} in all for {facts.maker}.",
        f"{_more_hands(facts)}{larger if small else ''}"
        "Or keep the data on a nearer, faster storage.",
        ", one small request after another" if small else "",
    )


@case("workers-wait", "Workers wait instead of computing")
def unseen_wait(facts: Facts) -> Seen | None:
    """A worker waits, and for what cannot be seen.

    Seen by a worker that is neither computing nor queued for a core for half or more of its time,
    and of which no request was seen: a network, a disk, a lock, a sleep. Cured by more workers;
    `pipeprof.stage` around its parts tells which one waits.
    """
    if not waits(facts) or facts.summary.sums["requests"]:
        return None
    stages = facts.summary.stages
    named = [str(stage) for stage in (Stage.READ, Stage.DECODE, Stage.TRANSFORM)
             if stages[str(stage)].total]  # fmt: skip
    where = max(named, key=lambda name: stages[name].total) if named else str(Stage.FETCH)
    look = "" if named else 'Name its parts with pipeprof.stage("read") to see which one waits. '
    return Seen(
        f"To make a batch {facts.maker} is blocked {percent(facts.share(BLOCKED))} of "
        f"{format_duration(facts.made_s)}, on a network, a disk, a lock or a sleep in {where}; "
        f"{facts.cores_used:.1f} of {counted(facts.environment.cores, 'core')} are busy.",
        f"{_more_hands(facts)}{look}Fewer, larger requests, or a nearer copy of the data, shorten "
        "the wait itself.",
    )


def _computes(facts: Facts) -> bool:
    return (
        _to_blame(facts) and not cores_are_contended(facts) and not stalled_by_slow_batches(facts)
        and facts.cpu_s >= 0.7 * facts.work_s > 0
    )  # fmt: skip


def _spare_cores(facts: Facts) -> str:
    full = (
        f"More workers than {facts.workers} do not help: {facts.cores_left:.1f} cores are left to "
        "compute on. "
    )
    return _more_hands(facts, "Compute") or full * cores_are_the_limit(facts)


@case("decode-bound", "Decoding is what loading costs")
def decoding(facts: Facts) -> Seen | None:
    """Decoding is most of the work, and it computes.

    Seen by the stage `decode`, half or more of making a batch, and by CPU time. Cured by workers
    while there are cores, and by a format that is cheaper to decode: `pipeprof sweep --formats`
    measures it on your data.
    """
    share = facts.stage_s(Stage.DECODE) / facts.made_s if facts.made_s else 0.0
    if not _computes(facts) or not share >= _MOSTLY:
        return None
    return Seen(
        f"{percent(share)} of the {format_duration(facts.made_s)} to make a batch is decoding, "
        f"and a batch takes {format_duration(facts.cpu_s)} of CPU time.",
        f"{_spare_cores(facts)}A cheaper format shortens the work itself: columns instead of text, "
        "smaller or less compressed images, or data that is decoded once and kept.",
    )


@case("compute-bound", "Making a batch is computing")
def computing(facts: Facts) -> Seen | None:
    """Making a batch computes, whatever it is that it computes.

    Seen by CPU time of 70 % or more of the work, without most of it being `decode`. Cured by
    workers while there are cores, and by cheaper transforms, or results that are kept.
    """
    share = facts.stage_s(Stage.DECODE) / facts.made_s if facts.made_s else 0.0
    if not _computes(facts) or share >= _MOSTLY:
        return None
    return Seen(
        f"A batch takes {format_duration(facts.cpu_s)} of CPU time in the "
        f"{format_duration(facts.made_s)} that {facts.maker} needs for it; "
        f"{facts.cores_used:.1f} of {counted(facts.environment.cores, 'core')} are busy.",
        f"{_spare_cores(facts)}Cheaper decoding or transforms, or results that are computed once "
        "and kept, shorten the work itself.",
    )


@case("no-getitems", "Data in memory is indexed one sample at a time")
def no_getitems(facts: Facts) -> Seen | None:
    """A data set of tensors or arrays has no `__getitems__`, as torch's `TensorDataset` has none.

    Seen by a map-style data set that holds its data, reads nothing, and takes at most 50 µs for a
    sample, while fetch and collate are half or more of the loop, or of what a worker does. torch's
    `TensorDataset` is timed after the run, sample by sample and by one index; a data set of the
    user's is not called. Cured by `__getitems__`, which torch gives all indices of a batch.
    """
    indexing, sums = facts.recording.indexing, facts.summary.sums
    reads = sums["bytes"] > 0 or sums["logical_bytes"] >= _ENOUGH_BYTES
    indexes = facts.samples > 1 and facts.work_s <= _PER_SAMPLE_S * facts.samples
    busy = facts.made_s >= _MOSTLY * max(1, facts.workers) * facts.cycle_s
    if indexing is None or not facts.starved or reads or not indexes or not busy:
        return None
    evidence = (
        f"{indexing.name} holds its data in memory; to make a batch of {facts.samples:.0f} takes "
        f"{format_duration(facts.made_s)}."
    )
    if indexing.one_by_one_s is None or not indexing.at_once_s:
        evidence += " What one index would take was not measured: the data set's code is yours."
    else:
        gain = indexing.one_by_one_s / indexing.at_once_s
        if gain < LEAST_GAIN:
            return None
        evidence += (
            f" Timed after the run: {format_duration(indexing.one_by_one_s)} sample by sample, "
            f"{format_duration(indexing.at_once_s)} by one index of each tensor, {gain:.1f}× as "
            "fast."
        )
    return Seen(
        evidence,
        "Give the data set a method __getitems__(self, indices) that returns the batch, of each "
        "tensor tensor.index_select(0, torch.tensor(indices)), and the DataLoader a collate_fn "
        "that returns what it is given.",
    )


@case("page-cache-flatters", "The data came from memory, not from storage")
def page_cache(facts: Facts) -> Seen | None:
    """The bytes came from memory, which will not always be so.

    Seen by physical bytes, a tenth of the logical ones or less. Network and FUSE file systems move
    bytes without saying so: there, however, reading blocks, and nothing is said. Cured by measuring
    with a cold cache, or on more data than there is memory.
    """
    sums = facts.summary.sums
    read, moved = sums["logical_bytes"], sums["physical_bytes"]
    if not (read >= _ENOUGH_BYTES and moved <= _CACHED * read and facts.share(BLOCKED) <= 0.1):
        return None
    source, free = facts.recording.source, facts.main.available_bytes
    fits = "whether all of it does is not known here"
    if source is not None and free is not None:
        fit = "fit" if source.bytes < free else "do not fit"
        fits = f"{format_bytes(source.bytes)} in all {fit} into the {format_bytes(free)} left"
    return Seen(
        f"Of {format_bytes(read)} that sampled batches read, the devices moved "
        f"{format_bytes(moved)}. It fits into the page cache; {fits}.",
        "Do not take this rate for that of the storage: a first epoch, a larger data set or "
        "another machine will read more slowly. Measure with a cold cache, or on more data than "
        "there is memory.",
    )
