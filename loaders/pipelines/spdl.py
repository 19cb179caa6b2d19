"""Time the stages of an SPDL pipeline, also of one that was built or started before.

Functions run in threads of an executor, to which each call is submitted. There they are timed: what
SPDL's own ``TaskStatsHook`` measures includes the wait for a free thread. Async functions and
generators are left to that hook. How long a queue was empty is read from SPDL's ``StatsQueue``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic
from typing import Any

from pipeprof.loaders.pipelines.contents import frame_variables
from pipeprof.loaders.pipelines.meters import Attached, StageMeter, Timers, attach
from pipeprof.measure.call_timer import CallTimer, Reading, TimedCall

_LIBRARY = "spdl"
_THREADS = "worker threads"


def find(thing: Any) -> Attached | None:
    """Attach timers to a ``Pipeline``."""
    library = sys.modules.get("spdl.pipeline")
    if library is None or not isinstance(thing, library.Pipeline):
        return None
    loop = thing._impl._event_loop
    last = frame_variables(loop._coro).get("node")
    if last is None:  # it has ended
        return None
    return attach(_LIBRARY, lambda timers: _Walk(timers, library, loop._executor).visit(last))


class _Walk:
    """Visits the stages from the batch to the sources."""

    def __init__(self, timers: Timers, library: Any, executor: Any) -> None:
        self._timers, self._library, self._executor = timers, library, executor
        self._functions: dict[int, dict[int, CallTimer]] = {}
        """Executor → function → its timer."""
        self._visited: set[int] = set()

    def visit(self, node: Any) -> None:
        """Visit a stage and those before it."""
        if id(node) in self._visited:
            return
        self._visited.add(id(node))
        arguments = getattr(node.cfg, "_args", None)
        if arguments is not None:
            self._time(node, arguments)
        elif not node.upstream:
            self._read_source(node)
        for each in node.upstream:
            self.visit(each)

    def _read_source(self, node: Any) -> None:
        """Read how often the source had an item ready. It runs in a thread of its own, in which it
        cannot be timed."""
        counter = getattr(node.output_queue, "_putc", None)
        if counter is not None:
            read = _with_queue(lambda: Reading(counter.num_items, None), node.output_queue)
            name = type(node.cfg.source).__qualname__
            self._timers.add(StageMeter(name, "source", read, 1, measured_by="library"))

    def _time(self, node: Any, arguments: Any) -> None:
        executor = arguments.executor or self._executor
        read = self._timed(arguments.op, executor)
        ours = read is not None
        read = read or _read_hook(self._hook_of(node))
        if read is None:
            self._timers.note(
                f"The stage {node.cfg.name} has no TaskStatsHook, so it is not timed."
            )
            return
        name, threads = str(node.cfg.name).partition(" at 0x")[0], self._executor._max_workers
        shared = arguments.executor is None and ours
        self._timers.add(
            StageMeter(
                name, "pipe", _with_queue(read, node.output_queue), arguments.concurrency,
                pool=_THREADS if shared else "", pool_size=threads if shared else None,
                measured_by="pipeprof" if ours else "library",
            )
        )  # fmt: skip

    def _timed(self, function: Any, executor: Any) -> Callable[[], Reading] | None:
        """Return the reading of a function that is timed in the threads of ``executor``; ``None``
        where that is not possible."""
        if not isinstance(executor, ThreadPoolExecutor) or not _is_plain(function):
            return None
        timers = self._functions.get(id(executor))
        if timers is None:
            timers = self._functions[id(executor)] = {}
            self._timers.replace(executor, "submit", _TimedSubmit(executor.submit, timers))
        return timers.setdefault(id(function), CallTimer()).read

    def _hook_of(self, node: Any) -> Any:
        """Return the ``TaskStatsHook`` that SPDL has given to a stage, if any."""
        kind = self._library.TaskStatsHook
        return next((each for each in _closed_over(node._coro) if isinstance(each, kind)), None)


class _TimedSubmit:
    """Stands in for the ``submit`` of an executor, and times the functions of known stages."""

    def __init__(self, submit: Callable[..., Any], timers: dict[int, CallTimer]) -> None:
        self._submit, self._timers = submit, timers

    def __call__(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        timer = self._timers.get(id(function))
        timed = function if timer is None else TimedCall(function, timer)
        return self._submit(timed, *args, **kwargs)


def _is_plain(function: Any) -> bool:
    """Return whether a call of ``function`` does all of its work."""
    call = getattr(function, "__call__", function)  # noqa: B004
    return not any(
        test(each)
        for test in (
            inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction,
        )
        for each in (function, call)
    )  # fmt: skip


def _closed_over(running: Any) -> Iterator[Any]:
    """Yield what the functions around a coroutine hold, the outermost first."""
    level: list[Any] = list(frame_variables(running).values())
    for _ in range(5):
        inner: list[Any] = []
        for each in level:
            yield each
            if isinstance(each, list):
                inner += each
            for cell in getattr(each, "__closure__", None) or ():
                with suppress(ValueError):  # it is not set yet
                    inner.append(cell.cell_contents)
        level = inner


def _read_hook(hook: Any) -> Callable[[], Reading] | None:
    if hook is None:
        return None
    return lambda: Reading(hook.num_success, hook.num_success * hook.ave_time)


def _with_queue(read: Callable[[], Reading], queue: Any) -> Callable[[], Reading]:
    """Add the time in which ``queue`` was empty, if it keeps that."""
    empty_s = getattr(queue, "_empty_duration", None)
    if empty_s is None:
        return read

    def read_both() -> Reading:
        started = queue._empty_t0 > 0
        return read()._replace(empty_s=empty_s(monotonic()) if started else 0.0)

    return read_both
