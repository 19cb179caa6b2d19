"""Keep pipeprof's frames out of the tracebacks that a worker sends to the main process."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

from pipeprof.measure import import_hook
from pipeprof.measure.patches import file_reads, fsspec_reads, recorded_calls

_HOOKS = os.path.join(os.path.dirname(__file__), "worker_hooks.py")  # which imports this module
_PATCHES = (import_hook, fsspec_reads, recorded_calls, file_reads)
_OUR_FILES = (_HOOKS, *(module.__file__ for module in _PATCHES))


def hide_our_frames(module: dict[str, Any]) -> None:
    """Remove our frames from the tracebacks of errors that this worker sends to main. ``module`` is
    the namespace of the worker loop. The text of an error is then the same as without pipeprof."""
    wrapper = module.get("ExceptionWrapper")
    if wrapper is None:
        return

    def clean_wrapper(exc_info: Any = None, where: str = "in background") -> Any:
        kind, error, trace = exc_info or sys.exc_info()
        _clean_causes(error)
        return wrapper((kind, error, _without_our_frames(trace)), where)

    module["ExceptionWrapper"] = clean_wrapper


def _clean_causes(error: BaseException | None) -> None:
    """Remove our frames from the errors that led to ``error``, which are printed with it."""
    visited: set[int] = set()
    pending = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in visited:
            continue
        visited.add(id(each))
        pending += [each.__cause__, each.__context__]
        if each is not error:
            each.__traceback__ = _without_our_frames(each.__traceback__)


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    kept = []
    while trace is not None:  # no recursion: a RecursionError may be the very error
        if trace.tb_frame.f_code.co_filename not in _OUR_FILES:
            kept.append(trace)
        trace = trace.tb_next
    cleaned = None
    for each in reversed(kept):
        cleaned = TracebackType(cleaned, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return cleaned
