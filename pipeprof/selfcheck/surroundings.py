"""What a pipeline needs around it: few cores, no warnings, and a Ctrl-C that is clean."""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any


@contextmanager
def few_cores(count: int | None) -> Iterator[None]:
    """This process, and what it starts, on ``count`` cores at most, so that a few workers are too
    many on any machine; ``None``: on all."""
    if count is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(usable)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


@contextmanager
def more_workers_than_cores() -> Iterator[None]:
    """torch does not warn of them: it is what one of the pipelines is about."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


def shielded(loader: Iterable[Any]) -> Iterator[Any]:
    """Starts to iterate, with workers that never hear of Ctrl-C: while they still load Python they
    would each print a traceback. This process hears of it, and ends them."""
    # started in between, it would let the signal through again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return iter(loader)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def workers_ended_by_ctrl_c() -> Iterator[None]:
    """At once: torch would wait for a worker that still loads Python, 5 s for each."""
    others = set(multiprocessing.active_children())
    try:
        yield
    except KeyboardInterrupt:
        # torch's handler raises when a worker ends that it did not end itself
        of_torch = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
            worker.join()
        signal.signal(signal.SIGCHLD, of_torch or signal.SIG_DFL)
        raise
