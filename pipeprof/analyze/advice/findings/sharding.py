"""Findings about how data is divided among workers and ranks."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.model import Stage

_LEAST_BATCHES = 10
"""Batches of each worker that delivered any, before the others count as idle."""


@case("workers-without-data")
def idle_workers(facts: Facts) -> Figures | None:
    """Some workers of an iterable data set deliver no batch.

    Reported when a worker delivered nothing, while the others delivered 10 batches or more each. An
    iterable data set divides its shards among workers, and there are fewer shards than workers.

    Fix: use as many workers as there are shards, or write the data in more shards.
    """
    counts = {
        number: worker.stages[str(Stage.FETCH)].count
        for number, worker in facts.summary.workers.items()
        if number >= 0
    }
    busy = [count for count in counts.values() if count]
    idle = facts.workers - len(busy)
    if facts.config.kind != "iterable" or idle <= 0 or facts.recording.lost_records:
        return None
    if min(busy, default=0) < _LEAST_BATCHES:
        return None
    return {"idle": idle, "busy": len(busy)}


@case("every-rank-reads-all")
def every_rank_reads_all(facts: Facts) -> Figures | None:
    """Every rank reads the whole data set, and skips what belongs to the others.

    Reported for data sets of Hugging Face whose number of shards is no multiple of the number of
    ranks, and for iterable data sets that Accelerate divides by samples.

    Fix: write the data in a number of shards that is a multiple of the number of ranks, or divide
    it by rank in the data set.
    """
    shared = facts.recording.shared_reads
    return None if shared is None else {"ranks": shared.ranks, "shards": shared.shards}


@case("rank-0-reads-for-all")
def one_rank_reads(facts: Facts) -> Figures | None:
    """Rank 0 alone reads and decodes the batches of all ranks, and sends them.

    Reported for loaders of Accelerate with `dispatch_batches`, its default for iterable data sets.
    It is reported on rank 0 where the accelerator is starved, and on all other ranks, because
    their loaders deliver nothing that can be measured.

    Fix: set `dispatch_batches=False`. An iterable data set then needs at least as many shards as
    ranks, divided by rank in the data set; else each rank reads all of it.
    """
    dispatch = facts.recording.dispatch
    if dispatch is None or not (facts.starved or facts.reads_elsewhere):
        return None
    return {
        "ranks": dispatch.ranks,
        "receives": facts.reads_elsewhere,
        "needed": facts.samples / facts.step_s if facts.step_s else None,
        "iterable": facts.config.kind == "iterable",
    }
