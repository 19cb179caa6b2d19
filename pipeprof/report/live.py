"""Word the live view of a run: a panel of a few lines, or one line for a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import set_cell_size

from pipeprof.report.text import bar, clean, shorten
from pipeprof.units import counted, format_duration, format_rate, format_share

_LABEL = 10
"""Columns of a label."""
_BAR = 24
"""Columns of a bar."""
_LONGEST_NAME = 40
_STARVED = 0.05
"""Starved share from which the cause of the wait is named and coloured."""
_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


@dataclass(frozen=True)
class LiveView:
    """The current state of one loader. ``None`` means unknown."""

    name: str
    epoch: int
    """Counted from 1."""
    batches: int
    """Batches delivered in this epoch."""
    length: int | None = None
    """Batches that this epoch has."""
    left_s: float | None = None
    """Seconds until the epoch ends, at the speed of the window."""
    window_s: float = 0.0
    """Length of the window. The fields below, except ``starved_of_all``, cover its batches."""
    samples_per_s: float | None = None
    starved: float | None = None
    """Share of the window, 0..1, in which the loop waited for a batch, measured on the host."""
    starved_of_all: float | None = None
    """The same share over all batches after warm-up."""
    waits_for: str | None = None
    """The cause to which most of the wait is charged."""
    ready: float | None = None
    """Mean number of batches that were ready when the loop requested one."""
    capacity: int = 0
    """Most batches that can be ready: workers × prefetch factor."""
    stages: Mapping[str, float | None] | None = None
    """Stage → mean seconds per batch, in the order in which a batch passes the stages."""
    only_timed: bool = False
    """Whether batches come so fast that only windows of them are recorded."""


def panel(view: LiveView, width: int, color: bool) -> list[str]:
    """Return the lines of the panel, each at most ``width`` columns wide."""
    starved = "not known yet" if view.starved is None else _shares(view)
    rows = [(f"-- pipeprof: {_progress(view)} ".ljust(width, "-"), _BOLD)]
    rows.append((_label("starved", starved), ""))
    if view.samples_per_s is not None:
        queue = f"; queue: {_queue(view)}" if view.capacity else ""
        rows.append((_label("rate", f"{_rate(view)}{queue}"), ""))
    stages = view.stages or {}
    longest = max((seconds or 0.0 for seconds in stages.values()), default=0.0)
    for name, seconds in stages.items():
        worst = name == view.waits_for and (view.starved or 0.0) >= _STARVED
        rows.append((_label(name, _stage(seconds, longest)), _RED if worst else ""))
    shown = [(set_cell_size(clean(text), width).rstrip(), style) for text, style in rows]
    return [f"{style}{text}{_PLAIN}" if color and style else text for text, style in shown]


def line(view: LiveView) -> str:
    """Return the whole view as one line for a log."""
    parts = [_progress(view)]
    if view.starved is not None:
        parts.append(f"starved {_shares(view)}")
    if view.samples_per_s is not None:
        parts.append(_rate(view))
    if view.ready is not None:
        parts.append(f"queue {_queue(view)}")
    stages = [
        f"{name} {format_duration(seconds)}"
        for name, seconds in (view.stages or {}).items()
        if seconds is not None
    ]
    if stages:
        parts.append(", ".join(stages))
    return clean("; ".join(parts))


def _progress(view: LiveView) -> str:
    batches = counted(view.batches, "batch")
    if view.length:
        batches = f"{view.batches:,} of {view.length:,} batches"
    left = f", {format_duration(view.left_s)} left" if view.left_s is not None else ""
    sampled = ", sampled" if view.only_timed else ""
    name = shorten(clean(view.name), _LONGEST_NAME)
    return f"{name}, epoch {view.epoch}: {batches}{left}{sampled}"


def _shares(view: LiveView) -> str:
    share = view.starved or 0.0
    cause = f", waiting for {view.waits_for}" if view.waits_for and share >= _STARVED else ""
    recent = f"{format_share(share)} of the last {format_duration(view.window_s)}{cause}"
    if view.starved_of_all is None:
        return recent
    return f"{recent}, {format_share(view.starved_of_all)} overall"


def _rate(view: LiveView) -> str:
    return format_rate(view.samples_per_s or 0.0, "samples")


def _queue(view: LiveView) -> str:
    ready = "?" if view.ready is None else f"{view.ready:.1f}"
    return f"{ready} of {counted(view.capacity, 'batch')} ready"


def _stage(seconds: float | None, longest: float) -> str:
    if seconds is None:
        return "?"
    share = seconds / longest if longest > 0 else 0.0
    return f"{bar(share, _BAR).ljust(_BAR)}  {format_duration(seconds)}"


def _label(name: str, text: str) -> str:
    return f"{name:<{_LABEL}}{text}"
