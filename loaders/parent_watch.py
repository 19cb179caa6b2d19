"""Let a worker end when its parent is killed.

torch's workers find out by themselves, but then wait for the thread that hands batches over, which
may wait for good: the pipe is full, nobody reads it, and the other workers hold its end open. For
workers of our own data sets and of sweeps only: other loaders are the user's.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import threading
from collections.abc import Callable
from typing import Any

_watching: int | None = None
"""The process that has a watch, as a fork copies this too."""


def end_with_parent() -> None:
    """Once its parent has ended, end this process at once, whatever it does; to be called in a
    worker's main thread. In a worker that is itself a thread it does nothing."""
    global _watching
    parent: Any = multiprocessing.parent_process()
    in_main = threading.current_thread() is threading.main_thread()
    if parent is None or not in_main or _watching == os.getpid():
        return
    _watching = os.getpid()
    threading.Thread(target=_follow, args=(parent,), name="parent-watch", daemon=True).start()


class WorkerInit:
    """`end_with_parent` ahead of the user's ``worker_init_fn``; picklable if that is."""

    def __init__(self, user_init: Callable[[int], None] | None) -> None:
        self._user_init = user_init

    def __call__(self, worker: int) -> None:
        end_with_parent()
        if self._user_init is not None:
            self._user_init(worker)


def _follow(parent: Any) -> None:
    try:
        descriptor = os.pidfd_open(parent.pid)
    except ProcessLookupError:
        pass  # it has ended already
    except (AttributeError, OSError):  # an old kernel, or a sandbox
        parent.join()  # by a pipe, which workers that began later hold open: last begun, first gone
    else:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll()
    os._exit(1)
