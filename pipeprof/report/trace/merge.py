"""A profile's workers, put into a trace that torch.profiler wrote of the same run.

Both clocks are brought to seconds since 1970. torch marks its loader's waits in a category that the
TensorBoard plugin drops, so that its DataLoader column says 0: they are given the one it counts.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pipeprof.errors import UsageError
from pipeprof.model import Profile
from pipeprof.report.trace.chrome import MAIN, Event, events_of, names_of

_LOADER: Final = re.compile(r"enumerate\(DataLoader\)#.*\.__next__")
_FIRST_PROCESS: Final = 4_000_000
"""Above any process that Linux numbers: 2^22 at most."""


def merge(trace: dict[str, Any], profile: Profile) -> dict[str, Any]:
    """``trace`` with the repaired column and ``profile``'s tracks, of the batches that were under
    way while it was taken.

    Raises `UsageError` when the two have no time in common.
    """
    if profile.unix_offset_s is None:
        raise UsageError("this profile does not say when it was taken; profile the run again.")
    theirs = trace.get("traceEvents")
    if not isinstance(theirs, list) or not all(isinstance(each, dict) for each in theirs):
        raise UsageError("the trace holds no traceEvents: it is not one of torch.profiler.")
    base_us = float(trace.get("baseTimeNanoseconds", 0)) / 1e3
    zero_s = base_us * 1e-6 - profile.unix_offset_s
    spans = [
        each for each in theirs if each.get("ph") == "X" and isinstance(each.get("ts"), int | float)
    ]
    if not spans:
        raise UsageError("the trace holds no spans: nothing was profiled in it.")
    begin = min(each["ts"] for each in spans)
    end = max(each["ts"] + each.get("dur", 0) for each in spans)
    every = events_of(profile, zero_s, own_loop=False)
    ours = [_numbered(each) for each in every if begin <= each["ts"] <= end]
    if not ours:
        raise UsageError(
            "none of the profile's batches was under way while the trace was taken: they are of "
            "different runs, or the profile has kept later batches only."
        )
    names = [_numbered(each) for each in names_of(every)]
    return {**trace, "traceEvents": [*map(_repaired, theirs), *names, *ours]}


def repaired(trace: dict[str, Any]) -> int:
    """How many of the loader's waits in ``trace`` the plugin would drop."""
    return sum(_repaired(each) is not each for each in trace["traceEvents"])


def _repaired(event: Event) -> Event:
    wait = event.get("cat") == "user_annotation" and _LOADER.fullmatch(str(event.get("name")))
    return {**event, "cat": "cpu_op"} if wait else event


def _numbered(event: Event) -> Event:
    """With processes and threads that are nobody's."""
    moved = {**event, "pid": _FIRST_PROCESS + event["pid"]}
    if event["tid"]:
        moved["tid"] = _FIRST_PROCESS + event["tid"]
    if event["name"] == "process_name":
        name = event["args"]["name"]
        said = "pipeprof: main" if event["pid"] == MAIN else f"pipeprof: {name}"
        moved["args"] = {"name": said}
    return moved
