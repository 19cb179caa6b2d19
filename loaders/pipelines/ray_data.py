"""Read what the iterators of Ray Data say about themselves.

Ray keeps how long the training loop was blocked, and by which of its stages (``IterationStage``).
The tasks that make the data run in other processes; a wait for them is ``production_wait``. The
figures begin after the first batch, as those of the steady state do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import GeneratorType
from typing import Any, Final

from pipeprof.loaders.pipelines.contents import frame_variables
from pipeprof.loaders.pipelines.meters import Attached, StageMeter, Timers, attach
from pipeprof.measure.call_timer import Reading

_LIBRARY = "ray.data"
_STATISTICS = "ray.data._internal.stats"
_STAGES: Final = {
    "production_wait": None,
    "data_transfer": "iter_get_s",
    "batching": "iter_next_batch_s",
    "format": "iter_format_batch_s",
    "collate": "iter_collate_batch_s",
    "finalize": "iter_finalize_batch_s",
}
"""Ray's name of a stage → its timer of the time in the stage, in Ray's own threads."""


def find(thing: Any) -> Attached | None:
    """Read the ``DatasetStats`` of a pass, which Ray's generator holds from its first batch on. The
    data set itself holds others, which are not of this pass."""
    module = sys.modules.get(_STATISTICS)
    if module is None or not isinstance(thing, GeneratorType):
        return None
    statistics = frame_variables(thing).get("stats")
    if not isinstance(statistics, module.DatasetStats):
        return None
    return attach(_LIBRARY, partial(_add_stages, statistics))


def _add_stages(statistics: Any, timers: Timers) -> None:
    for name, timer in reversed(_STAGES.items()):
        busy = getattr(statistics, timer) if timer else None
        waited = getattr(statistics, f"iter_blocked_{name}_s")
        timers.add(StageMeter(name, "IterationStage", _reader(busy, waited), measured_by="library"))


def _reader(busy: Any, waited: Any) -> Callable[[], Reading]:
    def read() -> Reading:
        busy_s = None if busy is None else busy.get()
        return Reading(None, busy_s, None, None, waited.get())

    return read
