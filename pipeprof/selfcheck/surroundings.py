"""Provide the conditions that pipelines need: few cores, no warnings, and a clean end by Ctrl-C."""

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
    """Restrict this process and its children to ``count`` cores, so that a few workers are too many
    on any machine. ``None``: no restriction."""
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
    """Suppress torch's warning about too many workers, which one pipeline uses on purpose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


def shielded(loader: Iterable[Any]) -> Iterator[Any]:
    """Start to iterate with workers that ignore Ctrl-C. While they load Python, each would print a
    traceback. This process receives the signal when all have started, and ends them."""
    # start the tracker first: starting it later would unblock the signal
    resource_tracker.ensure_running()
    interrupts: list[int] = []
    # another thread, such as one of a library, may receive the signal that is blocked here
    handler = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        iterator = iter(loader)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
    if interrupts:  # the iterator, a local, is dropped after its workers have been ended
        raise KeyboardInterrupt
    return iterator


@contextmanager
def workers_ended_by_ctrl_c() -> Iterator[None]:
    """End the workers at once on Ctrl-C: torch would wait 5 s for each that still loads Python."""
    others = set(multiprocessing.active_children())
    try:
        yield
    except KeyboardInterrupt:
        # torch's handler would raise when a worker ends that torch did not end
        of_torch = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
            worker.join()
        signal.signal(signal.SIGCHLD, of_torch or signal.SIG_DFL)
        raise
