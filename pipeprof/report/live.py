"""A run while it goes on: the few lines of a panel, or one for a log. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import set_cell_size

from pipeprof.report.text import bar, clean, shorten
from pipeprof.units import counted, format_duration, format_rate, format_share

_LABEL = 10
_BAR = 24
_NAME = 40
_STARVED = 0.05
"""From here on what is waited for stands out."""
_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


@dataclass(frozen=True)
class LiveView:
    """What is known of one loader at the moment. ``None``: unknown."""

    name: str
    epoch: int
    """From 1."""
    batches: int
    """Delivered in this epoch."""
    length: int | None = None
    """Batches of this epoch."""
    left_s: float | None = None
    """Until the epoch ends, at the speed of the last seconds."""
    window_s: float = 0.0
    """The last seconds: what follows is of the batches in them, but for ``starved_of_all``."""
    samples_per_s: float | None = None
    starved: float | None = None
    """The share of the time in which the loop waited for a batch, as the host saw it."""
    starved_of_all: float | None = None
    """Of all batches after warm-up."""
    waits_for: str | None = None
    """What most of the wait is charged to."""
    ready: float | None = None
    """Batches that lay ready when one was asked for, on average."""
    capacity: int = 0
    """Workers × prefetch factor."""
    stages: Mapping[str, float | None] | None = None
    """Mean seconds per batch, in the order in which a batch passes them."""
    in_stretches: bool = False
    """Batches come so fast that only stretches of them are watched."""


def panel(view: LiveView, width: int, color: bool) -> list[str]:
    """Lines of at most ``width`` columns."""
    starved = "not known yet" if view.starved is None else _shares(view)
    rows = [(f"-- pipeprof: {_where(view)} ".ljust(width, "-"), _BOLD)]
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
    """All of it in one, for a log."""
    words = [_where(view)]
    if view.starved is not None:
        words.append(f"starved {_shares(view)}")
    if view.samples_per_s is not None:
        words.append(_rate(view))
    if view.ready is not None:
        words.append(f"queue {_queue(view)}")
    stages = [
        f"{name} {format_duration(seconds)}"
        for name, seconds in (view.stages or {}).items()
        if seconds is not None
    ]
    if stages:
        words.append(", ".join(stages))
    return clean("; ".join(words))


def _where(view: LiveView) -> str:
    of = f" of {view.length:,}" if view.length else ""
    batches = counted(view.batches, "batch") if not of else f"{view.batches:,}{of} batches"
    left = f", {format_duration(view.left_s)} left" if view.left_s is not None else ""
    stretches = ", watched in stretches" if view.in_stretches else ""
    return f"{shorten(clean(view.name), _NAME)}, epoch {view.epoch}: {batches}{left}{stretches}"


def _shares(view: LiveView) -> str:
    known = view.starved or 0.0
    by = f", waiting for {view.waits_for}" if view.waits_for and known >= _STARVED else ""
    last = f"{format_share(known)} of the last {format_duration(view.window_s)}{by}"
    if view.starved_of_all is None:
        return last
    return f"{last}, {format_share(view.starved_of_all)} of all"


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
