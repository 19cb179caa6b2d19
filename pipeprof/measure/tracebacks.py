"""Keep pipeprof's frames out of the tracebacks that a worker, or a loader's thread, sends on as
text."""

from __future__ import annotations

import sys
from functools import cache
from types import TracebackType
from typing import Any

from pipeprof.measure import call_timer, import_hook
from pipeprof.measure.patches import (
    file_reads,
    fsspec_reads,
    gpu_direct_reads,
    obstore_reads,
    recorded_calls,
    replacing,
    s3torchconnector_reads,
    urllib3_reads,
)

_our_files = {
    module.__file__
    for module in (
        call_timer, import_hook, file_reads, fsspec_reads, gpu_direct_reads, obstore_reads,
        recorded_calls, replacing, s3torchconnector_reads, urllib3_reads,
    )
}  # fmt: skip


def add_our_file(path: str) -> None:
    """Count the frames of a file among ours."""
    _our_files.add(path)


def hide_our_frames(module: dict[str, Any]) -> None:
    """Remove our frames from the tracebacks of errors that the functions of ``module`` pass on as
    text. The text of an error is then the same as without pipeprof. ``module`` is a namespace that
    may hold torch's ``ExceptionWrapper``."""
    wrapper = module.get("ExceptionWrapper")
    if wrapper is not None and not isinstance(wrapper, _Cleaning):
        module["ExceptionWrapper"] = cleaning(wrapper)


@cache
def cleaning(wrapper: Any) -> Any:
    """Return what makes a ``wrapper`` of an error, without our frames."""
    return _Cleaning("ExceptionWrapper", (), {"original": wrapper})


class _Cleaning(type):
    """The class of a stand-in for ``ExceptionWrapper`` that makes real ones, of clean errors."""

    original: Any

    def __call__(cls, exc_info: Any = None, where: str = "in background") -> Any:
        kind, error, trace = exc_info or sys.exc_info()
        _clean_causes(error)
        return cls.original((kind, error, _without_our_frames(trace)), where)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)


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
        if trace.tb_frame.f_code.co_filename not in _our_files:
            kept.append(trace)
        trace = trace.tb_next
    cleaned = None
    for each in reversed(kept):
        cleaned = TracebackType(cleaned, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return cleaned
