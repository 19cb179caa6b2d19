"""Record what is received through urllib3 as the stage `read`: by boto3, botocore, requests and the
clients of Google Cloud Storage and Azure, which use it.

A ``GET`` is one request, from when it is sent until the last byte of its body was taken. Other
methods fetch no data. The body may be taken at once, or in pieces, also after other work.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from pipeprof.log import suppress_and_log
from pipeprof.measure.patches.recorded_calls import recorded_read
from pipeprof.measure.patches.replacing import Patches, Replacement, wrapped_methods
from pipeprof.measure.requests import note_request
from pipeprof.measure.stage_timer import current

_log = logging.getLogger(__name__)

_OPEN = "_pipeprof_open"
"""Attribute of an answer whose body was not taken to its end: when it was asked for, when it came,
and how many bytes were taken."""
_FROM_ERROR, _SLOW_DOWN = 400, (429, 503)
"""HTTP status codes."""


def _of_pool(module: Any) -> Iterator[Replacement]:
    yield from wrapped_methods(module.HTTPConnectionPool, {"urlopen": _recorded_request})


def _of_answer(module: Any) -> Iterator[Replacement]:
    wrappers = {"read": _recorded_body, "read1": _recorded_body, "read_chunked": _recorded_pieces}
    yield from wrapped_methods(module.HTTPResponse, wrappers)


def _received(answer: Any, _: object) -> int:
    return int(answer.tell())


def _recorded_request(urlopen: Any) -> Any:
    """Wrap ``urlopen``, which returns when the headers are here, or the body as well."""
    reading = recorded_read(urlopen, nbytes=_received)

    @functools.wraps(urlopen)
    def opening(pool: Any, *arguments: Any, **options: Any) -> Any:
        tally, method = current.tally, arguments[0] if arguments else options.get("method")
        if tally is None or method != "GET":
            return urlopen(pool, *arguments, **options)
        asked_s, answer = perf_counter(), None
        try:
            answer = reading(pool, *arguments, **options)
            return answer
        finally:
            came_s = perf_counter()
            if tally.note_requests and answer is None:
                note_request(asked_s, came_s, came_s, 0, failed=True)
            elif tally.note_requests:
                with suppress_and_log(_log, "a request through urllib3 is not noted"):
                    setattr(answer, _OPEN, (asked_s, came_s, 0))
                    _taken(answer, _received(answer, None))

    return opening


def _recorded_body(method: Any) -> Any:
    """Wrap a method that returns bytes of an answer."""
    reading = recorded_read(method, fewest=0)

    @functools.wraps(method)
    def taking(answer: Any, *arguments: Any, **options: Any) -> Any:
        if current.tally is None:
            return method(answer, *arguments, **options)
        data = None
        try:
            data = reading(answer, *arguments, **options)
            return data
        finally:
            _taken(answer, len(data or b""))

    return taking


def _recorded_pieces(method: Any) -> Any:
    """Wrap a generator of the bytes of an answer."""
    take = recorded_read(next, fewest=0)

    @functools.wraps(method)
    def pieces(answer: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
        whole = method(answer, *arguments, **options)
        while (piece := take(whole, None)) is not None:
            _taken(answer, len(piece))
            yield piece
        _taken(answer, 0)

    return pieces


def _taken(answer: Any, size: int) -> None:
    """Add ``size`` bytes to the request of an ``answer``, and note it at the end of the body."""
    with suppress_and_log(_log, "a request through urllib3 is not noted"):
        if _OPEN not in vars(answer):
            return
        asked_s, came_s, before = vars(answer).pop(_OPEN)
        if not (answer.isclosed() or answer.length_remaining == 0):
            setattr(answer, _OPEN, (asked_s, came_s, before + size))
        else:
            note_request(
                asked_s, came_s, perf_counter(), before + size,
                throttled=int(answer.status in _SLOW_DOWN), failed=answer.status >= _FROM_ERROR,
            )  # fmt: skip


PATCHES: Patches = {"urllib3.connectionpool": _of_pool, "urllib3.response": _of_answer}
