"""Before the first batch: workers that start, again and again, slowly, or unsafely."""

from __future__ import annotations

from statistics import median

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.model import Epoch
from pipeprof.units import counted, format_duration, percent

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


@case("worker-start-up-each-epoch", "Workers start anew in every epoch")
def start_up_each_epoch(facts: Facts) -> Seen | None:
    """Workers are started anew for each epoch, and that is a good part of it.

    Seen by the time to the first batch and to close, of each epoch: 5 % or more. The verdict leaves
    it out. Cured by `persistent_workers=True`.
    """
    if not starts_each_epoch(facts):
        return None
    each_s, epoch_s = start_up_s(facts), _epoch_s(facts)
    method = f" ({facts.config.start_method})" if facts.config.start_method else ""
    return Seen(
        f"Starting and stopping {counted(facts.workers, 'worker')}{method} took "
        f"{format_duration(each_s)} of a typical epoch of {format_duration(epoch_s)}: "
        f"{percent(each_s / epoch_s)}, which the verdict leaves out. "
        f"{counted(len(facts.recording.epochs), 'epoch')} were seen.",
        "Set persistent_workers=True; it is off.",
    )


@case("slow-start", "The first batch takes long to come")
def slow_start(facts: Facts) -> Seen | None:
    """The first batch takes long to come.

    Seen by 5 s or more, and a tenth of the run. Cured by looking at what the data set does when it
    is first used; under spawn each worker imports the script's modules again.
    """
    first_s, epochs = facts.recording.first_batch_s, facts.recording.epochs
    run_s = facts.main.wall_s or sum(epoch.wall_s for epoch in epochs)
    if first_s is None or first_s < _LONG_S or first_s < _LONG_SHARE * run_s:
        return None
    method = facts.config.start_method
    share = f", {percent(first_s / run_s)} of the run" if run_s else ""
    iterator_s = epochs[0].iterator_s if epochs and epochs[0].index == 0 else None
    parts = f"; {format_duration(iterator_s)} of it to make the iterator" if iterator_s else ""
    fix = "Look at what the data set does when it is first used: listing, opening, filling caches."
    if method in ("spawn", "forkserver"):
        fix += (f" With start method {method} each of {counted(facts.workers, 'worker')} also "
                "imports the script's modules and unpickles the data set.")  # fmt: skip
    return Seen(
        f"It came after {format_duration(first_s)}{share}{parts}. To make a batch takes "
        f"{format_duration(facts.made_s)} later on.",
        fix,
    )


@case("fork-with-threads", "Workers were forked beside a network client")
def fork_with_clients(facts: Facts) -> Seen | None:
    """Workers were forked while a network client's thread ran, which a fork does not copy.

    Seen by the names of the threads at the fork: those of fsspec and of event loops. Threads alone
    are no reason to warn, numpy's and torch's own are there in any process; and the data sets that
    pipeprof opens make their clients anew in each worker. Cured by making the client in the worker,
    or by `forkserver`.
    """
    seen = [name for name in facts.main.python_threads_at_fork if name.endswith(_CLIENTS)]
    if not seen or facts.recording.source is not None:
        return None
    names = ", ".join(seen[:3])
    return Seen(
        f"{counted(facts.workers, 'worker')} were forked while {counted(len(seen), 'thread')} of a "
        f"client ran ({names}), of {facts.main.threads_at_fork or 'unknown'} threads in all.",
        "A forked worker has the client's locks but not its thread: it can hang or fail. Make the "
        'client in the worker, or set multiprocessing_context="forkserver".',
    )
