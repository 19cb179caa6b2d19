"""Wake a worker, which has no hook of ours meanwhile, by the next task that main gives it.

What main puts into the worker's queue of tasks is a `WakeUp`. It is pickled such that unpickling it
calls a function of the worker, and gives the plain task.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from pipeprof.loaders.instrument.hooks import Hooks
from pipeprof.log import suppress_and_log

_log = logging.getLogger(__name__)


class WakeUp:
    """A task. Whoever unpickles it has the plain task, and was woken."""

    def __init__(self, task: Any) -> None:
        self._task = task

    def __reduce__(self) -> Any:
        return _woken, (self._task,)


class _PutWakeUp:
    """Stands in for the ``put`` of a queue of tasks until a task is put: that is a `WakeUp`."""

    def __init__(self, queue: Any) -> None:
        self._queue, self._hook = weakref.ref(queue), Hooks()
        self._hook.add(queue, "put", self)
        self._hook.set(True)

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        is_task = type(obj) is tuple  # anything else is a message about the epoch
        self._hook.set(False)
        queue: Any = self._queue()
        try:
            return queue.put(WakeUp(obj) if is_task else obj, *args, **kwargs)
        finally:
            if not is_task:
                self._hook.set(True)


def wake_by_next_task(queue: Any) -> None:
    """Wake the worker that reads tasks from ``queue`` by the next one that is put there."""
    if not isinstance(queue.put, _PutWakeUp):
        _PutWakeUp(queue)


_wake: Callable[[], object] | None = None


def when_woken(wake: Callable[[], object]) -> None:
    """Call ``wake`` whenever a task wakes this process, which is a worker."""
    global _wake
    _wake = wake


def _woken(task: Any) -> Any:
    """Return ``task``, after the worker was woken."""
    # an error here would end the worker
    with suppress_and_log(_log, "the next batches are not recorded"):
        if _wake is not None:
            _wake()
    return task
