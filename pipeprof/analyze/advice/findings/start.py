"""Findings about the start of workers, before the first batch."""

from __future__ import annotations

from statistics import median

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.model import Epoch

_LEAST_EPOCH_SHARE, _LEAST_EPOCH_S = 0.05, 0.02
"""Share of an epoch, and seconds, from which on starting workers is reported."""
_SLOW_START_S, _SLOW_START_SHARE = 5.0, 0.1
"""Seconds, and share of the run, from which on the first batch is slow to arrive."""
_LEAST_COPY = 65536
"""Bytes that a pipe holds. A smaller copy does not block the process that sends it."""
_LEAST_SAVED_S, _LEAST_SAVED_SHARE = 0.1, 0.05
"""Seconds of a start, and share of the run, from which on pickled copies are reported."""
_CLIENT_THREADS = ("fsspecIO", "(run_forever)")
"""How the names of network clients' threads end: those of fsspec and of any event loop."""


def start_up_s(facts: Facts) -> float:
    """Return the seconds of a typical epoch in which workers start and stop. It is 0 where the same
    workers serve all epochs, or none can."""
    kept = facts.config.persistent_workers or not facts.may_set("persistent_workers")
    if kept or not facts.workers or len(facts.recording.epochs) < 2:
        return 0.0
    return median(_start_up_s(epoch, facts) for epoch in facts.recording.epochs)


def _start_up_s(epoch: Epoch, facts: Facts) -> float:
    starting_s = max(0.0, (epoch.first_batch_s or 0.0) - facts.made_s)
    return starting_s + (epoch.closing_s or 0.0)


def starts_each_epoch(facts: Facts) -> bool:
    """Return whether restarting workers takes a considerable part of each epoch."""
    if facts.diagnosis.unjudged == "iterator-per-batch":
        return False  # they restart for each batch
    each_s = start_up_s(facts)
    return each_s >= _LEAST_EPOCH_S and each_s >= _LEAST_EPOCH_SHARE * epoch_s(facts)


def costs_more_than(facts: Facts, saved_s: float) -> bool:
    """Return whether restarting workers takes more of a typical epoch than ``saved_s``."""
    return starts_each_epoch(facts) and start_up_s(facts) > saved_s


def epoch_s(facts: Facts) -> float:
    """Return the seconds of a typical epoch; 0 if there was none."""
    return median([epoch.wall_s for epoch in facts.recording.epochs] or [0.0])


def steady_s(facts: Facts) -> float:
    """Return the seconds of a typical epoch in which no worker starts or stops."""
    return max(0.0, epoch_s(facts) - start_up_s(facts))


@case("worker-start-up-each-epoch")
def start_up_each_epoch(facts: Facts) -> Figures | None:
    """Workers are restarted for each epoch, which takes a considerable part of it.

    Reported when 5 % or more of a typical epoch passes before its first batch and in stopping the
    workers. The verdict leaves this time out.

    Fix: set `persistent_workers=True`.
    """
    if not starts_each_epoch(facts):
        return None
    each_s, whole_s = start_up_s(facts), epoch_s(facts)
    epochs = len(facts.recording.epochs)
    return {"each_s": each_s, "epoch_s": whole_s, "share": each_s / whole_s, "epochs": epochs}


@case("pickled-data-set")
def pickled_copies(facts: Facts) -> Figures | None:
    """Each worker is started with a pickled copy of the data set, one after the other.

    Reported for the start methods spawn and forkserver, when a copy has 64 KB or more. The training
    process starts the next worker only when one has imported its modules and read its copy. That
    must take 5 % or more of the run, without what remains when workers start together.

    Fix: keep the data out of the object. Give the data set a path, and open or memory-map the file
    in the worker. Tensors are not copied; lists and NumPy arrays are, and memory maps that are open
    already. `persistent_workers=True` starts workers once.
    """
    starts = facts.recording.pickled_starts
    if starts is None or starts.copy_bytes < _LEAST_COPY:
        return None
    pickle_s, start_s = starts.pickle_s / starts.starts, starts.start_s / starts.starts
    together = max(1.0, min(facts.workers, facts.cores / facts.environment.ranks))
    saved_s = pickle_s + (start_s - pickle_s) * (1 - 1 / together)
    if saved_s < _LEAST_SAVED_S or saved_s * starts.starts < _LEAST_SAVED_SHARE * _run_s(facts):
        return None
    return {
        "copy_bytes": starts.copy_bytes,
        "all_bytes": starts.copy_bytes * facts.workers,
        "pickle_s": pickle_s,
        "start_s": start_s,
        "saved_s": saved_s,
        "starts": starts.starts,
        "several": facts.workers > 1,
        "again": starts.starts > 1 and not facts.config.persistent_workers,
    }


def _run_s(facts: Facts) -> float:
    return facts.main.wall_s or sum(epoch.wall_s for epoch in facts.recording.epochs)


@case("slow-start")
def slow_start(facts: Facts) -> Figures | None:
    """The first batch is slow to arrive.

    Reported when it takes 5 s or more, and 10 % or more of the run, unless `pickled-data-set` says
    why.

    Fix: look at what the data set does when it is first used. With the start methods spawn and
    forkserver each worker also imports the script's modules again.
    """
    if pickled_copies.find(facts) is not None:
        return None
    first_s, epochs = facts.recording.first_batch_s, facts.recording.epochs
    run_s = _run_s(facts)
    if first_s is None or first_s < max(_SLOW_START_S, _SLOW_START_SHARE * run_s):
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

    Reported when a thread of fsspec or of an event loop exists at the fork. Other threads do not
    count, as those of numpy and torch exist in any process. Data sets that pipeprof opens are left
    out: they create new clients in each worker.

    Fix: create the client in the worker, or use the start method `forkserver`.
    """
    names = [name for name in facts.main.python_threads_at_fork if name.endswith(_CLIENT_THREADS)]
    if not names or facts.recording.source is not None:
        return None
    return {"threads": len(names), "names": ", ".join(names[:3])}
