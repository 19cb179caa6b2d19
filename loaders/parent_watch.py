"""End a worker when its parent is killed, and end a spawned one as a forked one ends.

torch's workers notice by themselves that their parent was killed, but then wait for the thread that
sends batches. That thread may block for ever, because the pipe is full and other workers keep its
read end open.

A forked worker ends without tearing down its interpreter. A spawned one tears it down while threads
run, among them the one that sends batches. Python stops such a thread within torch's C++ code,
which aborts the process now and then.

Only workers of `open_dataset` and of sweeps use this; other loaders belong to the user.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.util import Finalize
from typing import Any, Final

_LAST: Final = -1000
"""Priority of what runs when a worker has sent its batches and joined its threads."""
_watching_process: int | None = None
"""Id of the process that has a watching thread; a fork copies this variable, but no thread."""


def end_with_parent() -> None:
    """End this process at once when its parent has ended, whatever it is doing then. A spawned
    worker will also end without tearing down its interpreter. Call it in a worker's main thread. In
    a worker that is itself a thread it does nothing."""
    global _watching_process
    parent: Any = multiprocessing.parent_process()
    in_main = threading.current_thread() is threading.main_thread()
    if parent is None or not in_main or _watching_process == os.getpid():
        return
    _watching_process = os.getpid()
    threading.Thread(target=_exit_after, args=(parent,), name="parent-watch", daemon=True).start()
    if "--multiprocessing-fork" in sys.orig_argv:  # spawned
        Finalize(None, _exit_now, exitpriority=_LAST)


class WorkerInit:
    """Calls `end_with_parent`, then the user's ``worker_init_fn``; picklable if that is."""

    def __init__(self, user_init: Callable[[int], None] | None) -> None:
        self._user_init = user_init

    def __call__(self, worker: int) -> None:
        end_with_parent()
        if self._user_init is not None:
            self._user_init(worker)


def _exit_after(parent: Any) -> None:
    """Wait until ``parent`` has ended, and exit this process."""
    try:
        descriptor = os.pidfd_open(parent.pid)
    except ProcessLookupError:
        pass  # it has ended already
    except (AttributeError, OSError):  # an old kernel, or a sandbox
        parent.join()  # waits for a pipe that later workers keep open: the last of them ends first
    else:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll()
    os._exit(1)


def _exit_now() -> None:
    """Exit after a regular end, as a forked worker does."""
    if sys.exc_info()[0] is None:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError):  # there is none, or it is closed
                stream.flush()
        os._exit(0)
