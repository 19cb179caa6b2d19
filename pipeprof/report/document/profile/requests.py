"""What a run asked of storage, request by request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pipeprof.model import Percentiles, Profile, RequestStats
from pipeprof.report.document import blocks as doc
from pipeprof.units import counted, format_bytes, format_duration, format_rate, percent

_FIGURES: Final = ("mean", "p50", "p95", "p99")
_UNSEEN: Final = "Unknown: the data set makes requests that cannot be seen, or none."


def requests(profile: Profile) -> doc.Section:
    name, title = "requests", "Requests of storage"
    stats = profile.requests
    if stats is None:
        return doc.section(name, title, _UNSEEN, evidence=True)
    errors = _errors(stats)
    blocks = (
        *((_table(stats), _concurrent(stats)) if stats.count else ()),
        doc.Paragraph(errors) if errors else None,
        None if stats.count or errors else "No request was made.",
    )
    note = f"{stats.count:,} in the whole run, {format_rate(stats.requests_per_s, 'requests')}"
    return doc.section(name, title, *blocks, note=note, evidence=True)


def _table(stats: RequestStats) -> doc.Table:
    rows = [_row("size", stats.size, format_bytes)]
    if stats.first_byte_s is not None:
        rows.append(_row("to the first byte", stats.first_byte_s, format_duration))
    rows.append(_row("to the last byte", stats.latency_s, format_duration))
    return doc.Table((doc.Column("", "name"), *doc.columns(_FIGURES)), tuple(rows))


def _row(name: str, found: Percentiles, write: Callable[[float], str]) -> doc.Row:
    return doc.row(name, *(write(getattr(found, figure)) for figure in _FIGURES))


def _concurrent(stats: RequestStats) -> str:
    parts = [f"{stats.in_flight:.1f} under way at a time"]
    if stats.client_cpu_s is not None and stats.client_share is not None:
        parts.append(
            f"{format_duration(stats.client_cpu_s)} of CPU each, {percent(stats.client_share)} of "
            "a core while a worker waits for its store"
        )
    fit = stats.fit
    if fit is not None:
        flow = f" + {format_rate(fit.bandwidth)}" if fit.bandwidth else ""
        parts.append(
            f"by their sizes {format_duration(fit.latency_intercept_s)} each{flow}, R² {fit.r2:.2f}"
        )
    return "; ".join(parts) + "."


def _errors(stats: RequestStats) -> str:
    """Only what happened."""
    found = (
        (stats.retries, counted(stats.retries, "retry", "retries")),
        (stats.throttled, f"{counted(stats.throttled, 'answer')} to slow down"),
        (stats.errors, f"{counted(stats.errors, 'request')} given up"),
        (stats.lost, f"{counted(stats.lost, 'request')} not counted"),
    )
    return ", ".join(words for count, words in found if count)
