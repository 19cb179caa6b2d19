"""A Chrome trace of a profile's last batches: each on its way through its worker, the pipe and
main.

Perfetto, ``chrome://tracing`` and the TensorBoard profiler plugin read it. One track holds one kind
of work of one worker, so that nothing on a track overlaps; an arrow leads from the batch that a
worker has made to its delivery. The plugin counts as DataLoader what is called as torch calls it.
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
"""Process of the training loop; workers follow."""
_LOOP, _RECEIVE, _TURN, _DEVICE = 1, 2, 3, 4
_MAKE, _SEND, _PIPE = 1, 2, 3
_STREAM: Final = 7
"""Of a device, as torch numbers the usual one."""
_TRACKS: Final = {
    _LOOP: "training loop", _RECEIVE: "receive", _TURN: "wait for its turn", _DEVICE: "accelerator",
}  # fmt: skip
_WORKER_TRACKS: Final = {_MAKE: "make", _SEND: "serialise", _PIPE: "pipe"}
LOADER: Final = "enumerate(DataLoader)#pipeprof.__next__"
"""As the TensorBoard plugin expects it; torch's own traces have it in a category it drops."""
STEP: Final = "ProfilerStep#"


def trace_of(profile: Profile) -> dict[str, Any]:
    """The trace as its JSON object. Times in whole microseconds from the first batch kept: of
    fractions, spans that touch would overlap."""
    log = profile.batches
    begins = (at_s for at_s in (*log.fetch_start_s, *log.asked_s) if at_s is not None)
    events = events_of(profile, min(begins))
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "otherData": {
            "pipeprof": profile.environment.pipeprof,
            "profile": profile.name,
            "accelerator": "a span is a whole step as its stream went through it, not one kernel",
        },
        "traceEvents": [*names_of(events), *events],
    }


def render_trace(profile: Profile, compressed: bool) -> bytes:
    """The file's bytes. Raises `UsageError` for a profile without batches."""
    if not profile.batches.index:
        raise UsageError("this profile holds no batches; there is nothing to trace.")
    data = orjson.dumps(trace_of(profile))
    return gzip.compress(data, mtime=0) if compressed else data


def tensorboard_name(profile: Profile) -> str:
    """A file name by which the TensorBoard plugin finds a trace: ``NAME.123.pt.trace.json.gz``."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", profile.name).strip("-") or "profile"
    when = datetime.fromisoformat(profile.created)
    return f"{name}.{round(when.timestamp() * 1000)}.pt.trace.json.gz"


def events_of(profile: Profile, zero_s: float, own_loop: bool = True) -> list[Event]:
    """The spans and arrows of all batches kept; ``zero_s`` is the moment at which the trace begins.
    ``own_loop``: with the training loop itself, and the accelerator's steps told as kernels;
    torch's own traces have both."""
    log = profile.batches
    free_s: dict[tuple[int, int], float] = {}
    events: list[Event] = []
    for place, index in enumerate(log.index):
        row = _Row(log, place, zero_s, free_s)
        if own_loop:
            events += row.loop(index)
        events += [*row.fetch(index), *row.transfer(index), *row.device(index, own_loop)]
    return events


class _Row:
    """One batch."""

    def __init__(
        self, log: BatchLog, place: int, zero_s: float, free_s: dict[tuple[int, int], float]
    ) -> None:
        self._log, self._place, self._zero_s = log, place, zero_s
        self._free_s = free_s
        """Process and track → when its last event ended."""
        self._worker = int(log.worker[place]) if log.worker else -2
        self._process = MAIN + 1 + self._worker

    def loop(self, index: int) -> Iterator[Event]:
        asked, delivered, done = (self._at(name) for name in ("asked_s", "delivered_s", "done_s"))
        yield _span(f"{STEP}{index}", "user_annotation", MAIN, _LOOP, asked, done)
        yield _span(LOADER, "cpu_op", MAIN, _LOOP, asked, delivered, batch=index)
        launched = {} if isnan(self._value("device_busy_s")) else self._launch()
        pause = self._value("pause_s")
        paused = done if isnan(pause) else done - pause * 1e6
        yield _span("step", "cpu_op", MAIN, _LOOP, delivered, paused, batch=index, **launched)
        if paused < done:  # where in the step it lay is not kept
            yield _span("pause", "cpu_op", MAIN, _LOOP, paused, done, batch=index)

    def fetch(self, index: int) -> Iterator[Event]:
        begun, made = self._at("fetch_start_s"), self._at("fetch_end_s")
        if isnan(begun) or isnan(made) or self._worker < -1:
            return
        process, track = (MAIN, _LOOP) if self._worker < 0 else (self._process, _MAKE)
        parts = {
            name: value
            for name in ("read_s", "decode_s", "transform_s", "collate_s", "cpu_s", "bytes")
            if not isnan(value := self._value(name))
        }
        yield _span("make", "cpu_op", process, track, begun, made, batch=index, **parts)
        if self._worker >= 0:
            # within the span: at its very end, viewers no longer find it
            yield _arrow("s", index, process, track, max(begun, made - 1))
            yield _arrow("f", index, MAIN, _LOOP, self._at("delivered_s"))

    def transfer(self, index: int) -> Iterator[Event]:
        """A worker sends one batch after another, and main receives one after another."""
        if self._worker < 0:
            return
        made, sent, received, arrived = (
            self._at(name) for name in ("fetch_end_s", "sent_s", "received_s", "arrived_s")
        )
        yield from self._after("serialise", self._process, _SEND, made, sent, index)
        yield from self._after("pipe", self._process, _PIPE, sent, received, index)
        yield from self._after("unpickle", MAIN, _RECEIVE, received, arrived, index)
        asked, delivered = self._at("asked_s"), self._at("delivered_s")
        if arrived < asked:
            yield from self._after("ready", MAIN, _TURN, arrived, min(asked, delivered), index)

    def device(self, index: int, as_kernel: bool) -> Iterator[Event]:
        """As the accelerator saw it: how long, and from the delivery on. ``as_kernel``: tools look
        for the accelerator's work in that category only, on a stream, and by who launched it."""
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
        """By which tools know what has launched a kernel."""
        return {"correlation": self._place + 1}

    def _after(
        self, name: str, process: int, track: int, begin: float, end: float, index: int
    ) -> Iterator[Event]:
        """Not before the last one on its track was over."""
        begin = max(begin, self._free_s.get((process, track), begin))
        if end > begin:  # and not unknown
            self._free_s[process, track] = end
            yield _span(name, "cpu_op", process, track, begin, end, batch=index)

    def _value(self, name: str) -> float:
        column = getattr(self._log, name)
        value = column[self._place] if column else None
        return float("nan") if value is None else float(value)

    def _at(self, name: str) -> float:
        """A moment, in microseconds of the trace."""
        return (self._value(name) - self._zero_s) * 1e6


def _thread(process: int, track: int) -> int:
    """Of its own over all processes: the TensorBoard plugin tells tracks by that alone."""
    return 10 * process + track


def _span(
    name: str, category: str, process: int, track: int, begin: float, end: float, **told: Any
) -> Event:
    return {
        "ph": "X", "name": name, "cat": category, "pid": process, "tid": _thread(process, track),
        "ts": round(begin), "dur": max(0, round(end) - round(begin)), "args": told,
    }  # fmt: skip


def _arrow(phase: str, index: int, process: int, track: int, at: float) -> Event:
    arrow: Event = {
        "ph": phase, "name": "batch", "cat": "batch", "id": index, "pid": process,
        "tid": _thread(process, track), "ts": round(at),
    }  # fmt: skip
    if phase == "f":
        arrow["bp"] = "e"  # it ends in the span around that moment
    return arrow


def names_of(events: list[Event]) -> Iterator[Event]:
    """Of the processes and tracks that are used."""
    used = sorted({(event["pid"], event["tid"]) for event in events})
    for process in sorted({process for process, _ in used}):
        name = "main" if process == MAIN else f"worker {process - MAIN - 1}"
        yield _named("process_name", process, 0, name)
        yield {"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0,
               "args": {"sort_index": process}}  # fmt: skip
    for process, thread in used:
        tracks = _TRACKS if process == MAIN else _WORKER_TRACKS
        yield _named("thread_name", process, thread, tracks[thread % 10])


def _named(kind: str, process: int, track: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}}
