"""Recognise loaders that only rank 0 reads from, as Accelerate's with ``dispatch_batches``.

On every rank the dispatcher asks its DataLoader for an iterator, which starts the workers. Only
rank 0 takes batches from it, and sends the other ranks their parts.
"""

from __future__ import annotations

from types import FrameType

from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.frames import is_ours
from pipeprof.model import Dispatch

_DISPATCHER = "DataLoaderDispatcher"


def dispatch_of(frame: FrameType | None) -> Dispatch | None:
    """Return how the batches are divided if a dispatcher asked for an iterator. ``frame`` is that
    of our code which was called for it."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name != "__iter__":
        return None
    dispatcher = frame.f_locals.get("self")
    if all(cls.__name__ != _DISPATCHER for cls in type(dispatcher).__mro__):
        return None
    state = safe_getattr(dispatcher, "state")
    rank, ranks = safe_getattr(state, "process_index"), safe_getattr(state, "num_processes")
    both_known = type(rank) is int and type(ranks) is int
    return Dispatch(rank, ranks) if both_known and ranks > 1 else None
