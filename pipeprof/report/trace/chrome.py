"""Write a profile's recorded batches as a Chrome trace: their spans in a worker and in main.

Perfetto, ``chrome://tracing`` and the TensorBoard profiler plugin read it. A track holds one kind
of work of one process, so that no spans on it overlap. An arrow leads from the end of a fetch to
the delivery of its batch. The plugin's DataLoader column counts spans by torch's name for them.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from datetime import datetime
from math import isnan
from typing import Any, Final

import orjson

from pipeprof.errors import UsageError
from pipeprof.model import BatchLog, Profile

Event = dict[str, Any]

MAIN: Final = 1
"""Process id of the training loop in the trace; those of the workers follow."""
_LOOP, _RECEIVE, _READY, _DEVICE = 1, 2, 3, 4
_FETCH, _SEND, _PIPE = 1, 2, 3
_STREAM: Final = 7
"""The number that torch gives the default stream of a device."""
_TRACKS: Final = {
    _LOOP: "training loop", _RECEIVE: "receive", _READY: "ready", _DEVICE: "accelerator",
}  # fmt: skip
_WORKER_TRACKS: Final = {_FETCH: "fetch", _SEND: "serialise", _PIPE: "pipe"}
LOADER: Final = "enumerate(DataLoader)#pipeprof.__next__"
"""Name of a wait, as the TensorBoard plugin expects it."""
STEP: Final = "ProfilerStep#"


def trace_of(profile: Profile) -> dict[str, Any]:
    """Return the JSON object of the trace.

    Times are whole microseconds since the first recorded batch. With fractions, consecutive spans
    would overlap.
    """
    log = profile.batches
    begins = (at_s for at_s in (*log.fetch_start_s, *log.asked_s) if at_s is not None)
    events = events_of(profile, min(begins))
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "otherData": {
            "pipeprof": profile.environment.pipeprof,
            "profile": profile.name,
            "accelerator": "a span is a whole step on its stream, not one kernel",
        },
        "traceEvents": [*names_of(events), *events],
    }


def render_trace(profile: Profile, compressed: bool) -> bytes:
    """Return the bytes of the file. Raises `UsageError` for a profile without batches."""
    if not profile.batches.index:
        raise UsageError("this profile has no recorded batches, so there is nothing to trace.")
    data = orjson.dumps(trace_of(profile))
    return gzip.compress(data, mtime=0) if compressed else data


def tensorboard_name(profile: Profile) -> str:
    """Return a file name that the TensorBoard plugin finds: ``NAME.123.pt.trace.json.gz``."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", profile.name).strip("-") or "profile"
    when = datetime.fromisoformat(profile.created)
    return f"{name}.{round(when.timestamp() * 1000)}.pt.trace.json.gz"


def events_of(profile: Profile, zero_s: float, own_loop: bool = True) -> list[Event]:
    """Return the spans and arrows of all recorded batches.

    The trace begins at ``zero_s``. With ``own_loop``, it includes the training loop and marks the
    accelerator's steps as kernels. A trace of torch.profiler already has both.
    """
    log = profile.batches
    free_s: dict[tuple[int, int], float] = {}
    events: list[Event] = []
    for place, index in enumerate(log.index):
        batch = _Batch(log, place, zero_s, free_s)
        if own_loop:
            events += batch.loop(index)
        events += [*batch.fetch(index), *batch.transfer(index), *batch.device(index, own_loop)]
    return events


class _Batch:
    """The events of one batch."""

    def __init__(
        self, log: BatchLog, place: int, zero_s: float, free_s: dict[tuple[int, int], float]
    ) -> None:
        self._log, self._place, self._zero_s = log, place, zero_s
        self._free_s = free_s
        """(process, track) → end of its last span, in microseconds; shared by all batches."""
        self._worker = int(log.worker[place]) if log.worker else -2
        self._process = MAIN + 1 + self._worker

    def loop(self, index: int) -> Iterator[Event]:
        """Yield the wait, the step and the pause in the training loop."""
        asked, delivered, done = (self._at(name) for name in ("asked_s", "delivered_s", "done_s"))
        yield _span(f"{STEP}{index}", "user_annotation", MAIN, _LOOP, asked, done)
        yield _span(LOADER, "cpu_op", MAIN, _LOOP, asked, delivered, batch=index)
        launched = {} if isnan(self._value("device_busy_s")) else self._launch()
        pause = self._value("pause_s")
        paused = done if isnan(pause) else done - pause * 1e6
        yield _span("step", "cpu_op", MAIN, _LOOP, delivered, paused, batch=index, **launched)
        if paused < done:  # drawn at the end: its place in the step is unknown
            yield _span("pause", "cpu_op", MAIN, _LOOP, paused, done, batch=index)

    def fetch(self, index: int) -> Iterator[Event]:
        """Yield the span of the fetch, and the arrow from its end to the delivery."""
        begin, end = self._at("fetch_start_s"), self._at("fetch_end_s")
        if isnan(begin) or isnan(end) or self._worker < -1:
            return
        process, track = (MAIN, _LOOP) if self._worker < 0 else (self._process, _FETCH)
        parts = {
            name: value
            for name in ("read_s", "decode_s", "transform_s", "collate_s", "cpu_s", "bytes")
            if not isnan(value := self._value(name))
        }
        yield _span("fetch", "cpu_op", process, track, begin, end, batch=index, **parts)
        if self._worker >= 0:
            # inside the span: viewers do not find the span of an arrow at its very end
            yield _arrow("s", index, process, track, max(begin, end - 1))
            yield _arrow("f", index, MAIN, _LOOP, self._at("delivered_s"))

    def transfer(self, index: int) -> Iterator[Event]:
        """Yield the spans from the end of the fetch until the batch is requested."""
        if self._worker < 0:
            return
        fetched, sent, received, arrived = (
            self._at(name) for name in ("fetch_end_s", "sent_s", "received_s", "arrived_s")
        )
        yield from self._after("serialise", self._process, _SEND, fetched, sent, index)
        yield from self._after("pipe", self._process, _PIPE, sent, received, index)
        yield from self._after("unpickle", MAIN, _RECEIVE, received, arrived, index)
        asked, delivered = self._at("asked_s"), self._at("delivered_s")
        if arrived < asked:
            yield from self._after("ready", MAIN, _READY, arrived, min(asked, delivered), index)

    def device(self, index: int, as_kernel: bool) -> Iterator[Event]:
        """Yield the accelerator's step, which begins at the delivery at the earliest.

        With ``as_kernel`` it is a kernel on a stream, with the step that launched it. Tools find
        the accelerator's work only in that form.
        """
        busy, begin = self._value("device_busy_s"), self._at("delivered_s")
        if isnan(busy):
            return
        begin = max(begin, self._free_s.get((MAIN, _DEVICE), begin))
        spans = self._after("device step", MAIN, _DEVICE, begin, begin + busy * 1e6, index)
        for span in spans:
            if as_kernel:
                span["cat"] = "kernel"
                span["args"] |= {"device": 0, "stream": _STREAM, **self._launch()}
            yield span

    def _launch(self) -> dict[str, int]:
        """Return the argument by which tools link a kernel to the span that launched it."""
        return {"correlation": self._place + 1}

    def _after(
        self, name: str, process: int, track: int, begin: float, end: float, index: int
    ) -> Iterator[Event]:
        """Yield a span that begins no earlier than the last one on its track ended."""
        begin = max(begin, self._free_s.get((process, track), begin))
        if end > begin:  # false also where one of them is unknown (NaN)
            self._free_s[process, track] = end
            yield _span(name, "cpu_op", process, track, begin, end, batch=index)

    def _value(self, name: str) -> float:
        column = getattr(self._log, name)
        value = column[self._place] if column else None
        return float("nan") if value is None else float(value)

    def _at(self, name: str) -> float:
        """Return a moment in microseconds of the trace; NaN if it is unknown."""
        return (self._value(name) - self._zero_s) * 1e6


def _thread(process: int, track: int) -> int:
    """Return a thread id that is unique over all processes, as the TensorBoard plugin needs."""
    return 10 * process + track


def _span(
    name: str, category: str, process: int, track: int, begin: float, end: float, **args: Any
) -> Event:
    return {
        "ph": "X", "name": name, "cat": category, "pid": process, "tid": _thread(process, track),
        "ts": round(begin), "dur": max(0, round(end) - round(begin)), "args": args,
    }  # fmt: skip


def _arrow(phase: str, index: int, process: int, track: int, at: float) -> Event:
    arrow: Event = {
        "ph": phase, "name": "batch", "cat": "batch", "id": index, "pid": process,
        "tid": _thread(process, track), "ts": round(at),
    }  # fmt: skip
    if phase == "f":
        arrow["bp"] = "e"  # bind the arrow to the span around its end
    return arrow


def names_of(events: list[Event]) -> Iterator[Event]:
    """Yield the names of the processes and tracks that ``events`` use."""
    used = sorted({(event["pid"], event["tid"]) for event in events})
    for process in sorted({process for process, _ in used}):
        name = "main" if process == MAIN else f"worker {process - MAIN - 1}"
        yield _name_event("process_name", process, 0, name)
        yield {"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0,
               "args": {"sort_index": process}}  # fmt: skip
    for process, thread in used:
        tracks = _TRACKS if process == MAIN else _WORKER_TRACKS
        yield _name_event("thread_name", process, thread, tracks[thread % 10])


def _name_event(kind: str, process: int, track: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}}
