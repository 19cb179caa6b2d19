"""Merge a profile's workers into a trace that torch.profiler wrote of the same run.

Both clocks are converted to seconds since 1970. torch writes its loader's waits in a category that
the TensorBoard plugin ignores, so its DataLoader column shows 0. They get the category it counts.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pipeprof.errors import UsageError
from pipeprof.model import Profile
from pipeprof.report.trace.chrome import Event, events_of, names_of

_LOADER: Final = re.compile(r"enumerate\(DataLoader\)#.*\.__next__")
_FIRST_PROCESS: Final = 4_000_000
"""First process id in the merged trace; larger than any of Linux, which are at most 2^22."""


def merge(trace: dict[str, Any], profile: Profile) -> dict[str, Any]:
    """Return ``trace`` with repaired waits and with the events of ``profile`` in the same period.

    Raises `UsageError` if the two do not overlap in time, or cannot be merged.
    """
    if profile.unix_offset_s is None:
        raise UsageError("this profile does not record its start time; profile the run again.")
    torch_events = trace.get("traceEvents")
    if not isinstance(torch_events, list) or not all(isinstance(e, dict) for e in torch_events):
        raise UsageError("the trace has no traceEvents: it is not one of torch.profiler.")
    base_us = float(trace.get("baseTimeNanoseconds", 0)) / 1e3
    zero_s = base_us * 1e-6 - profile.unix_offset_s
    spans = [
        each
        for each in torch_events
        if each.get("ph") == "X" and isinstance(each.get("ts"), int | float)
    ]
    if not spans:
        raise UsageError("the trace has no spans: nothing was profiled in it.")
    begin = min(each["ts"] for each in spans)
    end = max(each["ts"] + each.get("dur", 0) for each in spans)
    events = events_of(profile, zero_s, own_loop=False)
    added = [_renumber(each) for each in events if begin <= each["ts"] <= end]
    if not added:
        raise UsageError(
            "the trace and the profile do not overlap in time: they are of different runs, or "
            "the profile recorded only later batches."
        )
    names = [_renumber(each) for each in names_of(events)]
    return {**trace, "traceEvents": [*map(_repair, torch_events), *names, *added]}


def repaired(trace: dict[str, Any]) -> int:
    """Return how many of the loader's waits in ``trace`` the plugin would ignore."""
    return sum(_repair(each) is not each for each in trace["traceEvents"])


def _repair(event: Event) -> Event:
    """Return a wait of torch's loader in the category that the plugin counts."""
    wait = event.get("cat") == "user_annotation" and _LOADER.fullmatch(str(event.get("name")))
    return {**event, "cat": "cpu_op"} if wait else event


def _renumber(event: Event) -> Event:
    """Return an event with process and thread ids that the trace does not use."""
    moved = {**event, "pid": _FIRST_PROCESS + event["pid"]}
    if event["tid"]:
        moved["tid"] = _FIRST_PROCESS + event["tid"]
    if event["name"] == "process_name":
        name = event["args"]["name"]
        moved["args"] = {"name": f"pipeprof: {name}"}
    return moved
