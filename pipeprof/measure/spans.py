"""Where code that reads, decodes or transforms says how long it took.

Each thread that makes batches has at most one open `Tally`; `record` adds to it, and costs next
to nothing when there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from pipeprof.model import Span, Stage


class Tally:
    """The seconds, bytes and requests of each stage while one batch is made."""

    __slots__ = ("bytes", "requests", "seconds", "spans")

    def __init__(self, keep_spans: bool = False) -> None:
        self.seconds: dict[Stage, float] = {}
        self.bytes = 0
        self.requests = 0
        self.spans: list[Span] | None = [] if keep_spans else None

    def add(self, span: Span) -> None:
        self.seconds[span.stage] = self.seconds.get(span.stage, 0.0) + span.end_s - span.start_s
        self.bytes += span.bytes
        self.requests += span.requests
        if self.spans is not None:
            self.spans.append(span)


class _Current(threading.local):
    tally: Tally | None = None


_current = _Current()


def record(span: Span) -> None:
    """Add ``span`` to the batch this thread is making, if any."""
    if _current.tally is not None:
        _current.tally.add(span)


@contextmanager
def stage(name: Stage) -> Iterator[None]:
    """Record the body's time as ``name``, also when it raises."""
    start = perf_counter()
    try:
        yield
    finally:
        record(Span(name, start, perf_counter()))


@contextmanager
def tallied(tally: Tally) -> Iterator[Tally]:
    """Let ``record`` in this thread add to ``tally`` while the body runs."""
    outer = _current.tally
    _current.tally = tally
    try:
        yield tally
    finally:
        _current.tally = outer
