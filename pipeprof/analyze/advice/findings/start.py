"""Before the first batch: workers that start, again and again, slowly, or unsafely."""

from __future__ import annotations

from statistics import median

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.model import Epoch

_MUCH = 0.05
"""Of an epoch."""
_NOTICED_S = 0.02
_LONG_S = 5.0
_LONG_SHARE = 0.1
"""Of the run."""
_CLIENTS = ("fsspecIO", "(run_forever)")
"""In the names of threads in which network clients live: fsspec's, and any event loop's."""


def start_up_s(facts: Facts) -> float:
    """What starting and stopping workers takes of a typical epoch; 0 where they go on."""
    if facts.config.persistent_workers or not facts.workers or len(facts.recording.epochs) < 2:
        return 0.0
    return median(_start_up_s(epoch, facts) for epoch in facts.recording.epochs)


def _start_up_s(epoch: Epoch, facts: Facts) -> float:
    started_s = max(0.0, (epoch.first_batch_s or 0.0) - facts.made_s)
    return started_s + (epoch.closing_s or 0.0)


def starts_each_epoch(facts: Facts) -> bool:
    each_s = start_up_s(facts)
    return each_s >= _NOTICED_S and each_s >= _MUCH * _epoch_s(facts)


def _epoch_s(facts: Facts) -> float:
    return median(epoch.wall_s for epoch in facts.recording.epochs)


@case("worker-start-up-each-epoch")
def start_up_each_epoch(facts: Facts) -> Figures | None:
    """Workers are started anew for each epoch, and that is a good part of it.

    Seen by the time to the first batch and to close, of each epoch: 5 % or more. The verdict leaves
    it out. Cured by `persistent_workers=True`.
    """
    if not starts_each_epoch(facts):
        return None
    each_s, epoch_s = start_up_s(facts), _epoch_s(facts)
    epochs = len(facts.recording.epochs)
    return {"each_s": each_s, "epoch_s": epoch_s, "share": each_s / epoch_s, "epochs": epochs}


@case("slow-start")
def slow_start(facts: Facts) -> Figures | None:
    """The first batch takes long to come.

    Seen by 5 s or more, and a tenth of the run. Cured by looking at what the data set does when it
    is first used; under spawn each worker imports the script's modules again.
    """
    first_s, epochs = facts.recording.first_batch_s, facts.recording.epochs
    run_s = facts.main.wall_s or sum(epoch.wall_s for epoch in epochs)
    if first_s is None or first_s < _LONG_S or first_s < _LONG_SHARE * run_s:
        return None
    iterator_s = epochs[0].iterator_s if epochs and epochs[0].index == 0 else None
    return {
        "share": first_s / run_s if run_s else None,
        "iterator_s": iterator_s or None,
        "imports": facts.config.start_method in ("spawn", "forkserver"),
    }


@case("fork-with-threads")
def fork_with_clients(facts: Facts) -> Figures | None:
    """Workers were forked while a network client's thread ran, which a fork does not copy.

    Seen by the names of the threads at the fork: those of fsspec and of event loops. Threads alone
    are no reason to warn, numpy's and torch's own are there in any process; and the data sets that
    pipeprof opens make their clients anew in each worker. Cured by making the client in the worker,
    or by `forkserver`.
    """
    seen = [name for name in facts.main.python_threads_at_fork if name.endswith(_CLIENTS)]
    if not seen or facts.recording.source is not None:
        return None
    return {"threads": len(seen), "names": ", ".join(seen[:3])}
