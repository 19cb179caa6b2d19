"""Record reads through obstore as the stage `read`.

These are ``get_range``, ``get_ranges`` and ``get``, as functions of the module and as methods of a
store. The bytes of ``get`` arrive later, in an answer whose type obstore does not export: it is
patched when the first answer arrives. obstore's files and its coroutines are not recorded.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Iterator, Sequence
from math import nan
from time import perf_counter
from typing import Any

from pipeprof.log import suppress_and_log
from pipeprof.measure.patches.recorded_calls import recorded_read
from pipeprof.measure.patches.replacing import Patches, Replacement, replace
from pipeprof.measure.requests import note_request
from pipeprof.measure.stage_timer import current

_log = logging.getLogger(__name__)


class _LastAnswer(threading.local):
    """The last ``get`` of this thread."""

    answer_id: int | None = None
    asked_s = answered_s = nan


_last = _LastAnswer()


def _of_module(module: Any) -> Iterator[Replacement]:
    ranges = recorded_read(module.get_range, nbytes=_nbytes, one_request=True)
    yield module, "get_range", ranges
    yield module, "get_ranges", recorded_read(module.get_ranges, nbytes=_total_nbytes)
    yield module, "get", _recorded_get(module.get)


def _nbytes(data: Any, _: object) -> int:
    return len(data)


def _total_nbytes(buffers: Sequence[Any], _: object) -> int:
    return sum(map(len, buffers))


def _none_yet(*_: object) -> int:
    return 0


def _recorded_get(get: Any) -> Any:
    """Wrap ``get``, which returns when the first bytes of an object are here."""
    reading = recorded_read(get, nbytes=_none_yet)

    @functools.wraps(get)
    def getting(*arguments: Any, **options: Any) -> Any:
        tally = current.tally
        if tally is None:
            return get(*arguments, **options)
        asked_s, answer = perf_counter(), None
        try:
            answer = reading(*arguments, **options)
            return answer
        finally:
            answered_s = perf_counter()
            if answer is not None:
                with suppress_and_log(
                    _log, "the bytes that obstore's get returns are not recorded"
                ):
                    _patch_type_of(answer)
                _last.answer_id, _last.asked_s, _last.answered_s = id(answer), asked_s, answered_s
            elif tally.note_requests:
                note_request(asked_s, nan, answered_s, 0, failed=True)

    return getting


def _patch_type_of(answer: Any) -> None:
    kind = type(answer)
    if not hasattr(kind.bytes, "__wrapped__"):
        for name in ("bytes", "buffer"):
            replace(kind, name, _recorded_body(vars(kind)[name]))
        for name in ("stream", "__iter__"):
            replace(kind, name, _recorded_stream(vars(kind)[name]))


def _recorded_body(method: Any) -> Any:
    """Wrap what returns all bytes of an answer, which ends the request."""
    reading = recorded_read(method, fewest=0, nbytes=_nbytes)

    @functools.wraps(method)
    def body(answer: Any) -> Any:
        tally = current.tally
        if tally is None:
            return method(answer)
        start_s, data = perf_counter(), None
        try:
            data = reading(answer)
            return data
        finally:
            asked_s = first_s = start_s
            if _last.answer_id == id(answer):
                asked_s, first_s = _last.asked_s, _last.answered_s
                _last.answer_id = None  # another answer may have this id later
            if tally.note_requests:
                size = 0 if data is None else len(data)
                note_request(asked_s, first_s, perf_counter(), size, failed=data is None)

    return body


def _recorded_stream(method: Any) -> Any:
    """Wrap what returns the bytes of an answer in pieces. Their request is counted, not timed."""

    @functools.wraps(method)
    def stream(*arguments: Any, **options: Any) -> Any:
        pieces = method(*arguments, **options)
        if current.tally is not None:
            with suppress_and_log(_log, "the pieces that obstore's get returns are not recorded"):
                _patch_pieces(type(pieces))
        return pieces

    return stream


def _patch_pieces(kind: type) -> None:
    following = vars(kind)["__next__"]
    if not hasattr(following, "__wrapped__"):
        replace(kind, "__next__", recorded_read(following, fewest=0, nbytes=_nbytes))


PATCHES: Patches = {"obstore": _of_module}
