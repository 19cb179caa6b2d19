"""Recognise a thread that takes batches ahead of the training loop, and puts them into a queue.

MONAI's `ThreadDataLoader` and many background generators do so. How long such a thread waits says
nothing of how long training does.
"""

from __future__ import annotations

import inspect
import threading
from types import FrameType

from pipeprof.loaders.instrument.frames import is_ours

_PUT = frozenset({"put", "put_nowait"})


def takes_ahead(frame: FrameType | None) -> bool:
    """Return whether the code that has just asked for a batch puts batches into a queue, and runs
    in a thread for that. A training loop may run in a thread, too.

    Args:
        frame: That of our code, which was asked.
    """
    if threading.get_ident() == threading.main_thread().ident:
        return False
    while frame is not None and _passes_on(frame):
        frame = frame.f_back
    return frame is not None and not _PUT.isdisjoint(frame.f_code.co_names)


def _passes_on(frame: FrameType) -> bool:
    code = frame.f_code
    return is_ours(code.co_filename) or bool(code.co_flags & inspect.CO_GENERATOR)
