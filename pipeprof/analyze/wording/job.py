"""Texts of the joined result of a job's ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pipeprof.analyze.wording.template import fill
from pipeprof.model import TrainingJob


def job_headline(job: TrainingJob, hosts: Mapping[str, float]) -> str:
    """Return one sentence or two with the verdict and who holds the job up.

    Args:
        job: Its ``headline`` is not looked at.
        hosts: Host → share of the job's stall, 0..1.
    """
    first = job.ranks[0] if job.ranks else None
    host = max(hosts, key=hosts.__getitem__, default="")
    figures = {
        "found": len(job.ranks),
        "cause": next(iter(job.blame), "unknown"),
        "rank": first.rank if first else None,
        "on": first.host if first and hosts else None,
        "stall": first.stall_share if first else None,
        "its_cause": first.bottleneck if first else None,
        "host": host,
        "host_stall": hosts.get(host),
        "cured": _gain(job),
    }
    code = job.verdict if job.steps else job.unjudged or "unmeasured"
    who = _WHO[job.straggling] if job.verdict == "starved" else ""
    return fill(_HEADLINES[code], figures, job) + fill(who, figures, job)


def job_notes(
    job: TrainingJob, sharing: Iterable[tuple[str, list[int], int]] = ()
) -> Iterator[str]:
    """Yield what limits the result, and which ranks share cores."""
    if job.missing:
        yield fill(_MISSING, {"missing": len(job.missing), "named": _named(job.missing)}, job)
    if job.idle:
        yield fill(_IDLE, {"idle": len(job.idle), "named": _named(job.idle)}, job)
    for host, ranks, cores in sharing:
        figures = {"named": _named(ranks), "on": host, "cores": cores}
        yield fill(_SHARED, figures, job)
    if job.verdict == "starved":
        yield _LIMIT


def _named(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:5])) + (", …" if len(ranks) > 5 else "")


def _gain(job: TrainingJob) -> float | None:
    """Return the gain of the cure that the headline is about; ``None`` where it has none."""
    of = {"rank": "rank", "host": "host", "turns": "tails", "all": "loading"}.get(job.straggling)
    name = str(job.ranks[0].rank) if of == "rank" else None
    gains = [cure.gain for cure in job.cures if cure.of == of and name in (None, cure.name)]
    return max(gains, default=None)


_SHARE: Final = (
    "in {steps:n common step} all ranks waited for the last one's batch {starved_fraction:share} "
    "of the time (95 %: {starved_interval[0]:points}–{starved_interval[1]:points} %)"
)
_HEADLINES: Final = {
    "unmeasured": "Inconclusive: the profiles of the {found:n rank} have no step in common.",
    "taken-ahead": "Inconclusive: in a rank a thread takes the batches ahead of the training loop, "
    "so how long that waits is unknown. Wrap what the loop takes them from: iter(loader), or a "
    "queue's get.",
    "iterator-per-batch": "Inconclusive: the loop of a rank makes a new iterator for each batch. "
    "Make one for an epoch.",
    "fed": f"Fed: {_SHARE}; loading does not hold the job up.",
    "starved": f"Starved: {_SHARE}, mostly for {{cause}}. ",
    "inconclusive": f"Inconclusive: {_SHARE}.",
}
_WHO: Final = {
    "none": "",
    "rank": "Rank {rank}« on {on}» is to be cured first: {stall:percent} of that wait was for its "
    "batches, mostly for {its_cause}.« If it loaded like the others: +{cured:percent}.»",
    "host": "The ranks of {host} are to be cured first: {host_stall:percent} of that wait was for "
    "their batches.« If they loaded like the others: +{cured:percent}.»",
    "turns": "No rank is always the last: now and then a batch of one is late, and all wait for it."
    "« Without the late batches: +{cured:percent}.»",
    "all": "All ranks wait at the same time.« If data were free: +{cured:percent}.»",
}
_IDLE: Final = "{idle:n rank} loaded nothing, and held nobody up: {named}."
_SHARED: Final = (
    "The ranks {named} on {on} may all run on the same {cores:n core}: bind each to cores of its "
    "own, as torchrun --numa-binding=exclusive or srun --cpu-bind=cores does."
)
_MISSING: Final = (
    "{missing:n rank} of {world_size} left no profile: {named}. Whether they hold the job up is "
    "unknown."
)
_LIMIT: Final = (
    "A rank whose training step itself is slow looks like those that wait for it there; only "
    "waiting for batches is measured."
)
