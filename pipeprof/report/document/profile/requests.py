"""Present the storage requests of a run: their sizes, times, concurrency and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pipeprof.model import Percentiles, Profile, RequestStats
from pipeprof.report.document import blocks as doc
from pipeprof.units import counted, format_bytes, format_duration, format_rate, percent

_FIGURES: Final = ("mean", "p50", "p95", "p99")
_UNKNOWN: Final = "Unknown: the data set made no requests, or none that could be recorded."


def requests(profile: Profile) -> doc.Section:
    """Return the percentiles of all requests; errors only where there were any."""
    name, title = "requests", "Storage requests"
    stats = profile.requests
    if stats is None:
        return doc.section(name, title, _UNKNOWN, evidence=True)
    errors = _errors(stats)
    blocks = (
        *((_table(stats), _concurrency(stats)) if stats.count else ()),
        doc.Paragraph(errors) if errors else None,
        None if stats.count or errors else "No request was made.",
    )
    note = f"{stats.count:,} in the whole run, {format_rate(stats.requests_per_s, 'requests')}"
    return doc.section(name, title, *blocks, note=note, evidence=True)


def _table(stats: RequestStats) -> doc.Table:
    rows = [_row("size", stats.size, format_bytes)]
    if stats.first_byte_s is not None:
        rows.append(_row("time to first byte", stats.first_byte_s, format_duration))
    rows.append(_row("time to last byte", stats.latency_s, format_duration))
    return doc.Table((doc.Column("", "name"), *doc.columns(_FIGURES)), tuple(rows))


def _row(name: str, stats: Percentiles, write: Callable[[float], str]) -> doc.Row:
    return doc.row(name, *(write(getattr(stats, figure)) for figure in _FIGURES))


def _concurrency(stats: RequestStats) -> str:
    sentences = [f"{stats.in_flight:.1f} requests in flight on average."]
    if stats.client_cpu_s is not None and stats.client_share is not None:
        sentences.append(
            f"Client CPU: {format_duration(stats.client_cpu_s)} a request, "
            f"{percent(stats.client_share)} of a core while a worker waits for storage."
        )
    fit = stats.fit
    if fit is not None:
        flow = f" + size / {format_rate(fit.bandwidth)}" if fit.bandwidth else ""
        sentences.append(
            f"Fitted time: {format_duration(fit.latency_intercept_s)}{flow} (R² {fit.r2:.2f})."
        )
    return " ".join(sentences)


def _errors(stats: RequestStats) -> str:
    """Count retries and errors; kinds that did not occur are left out."""
    counts = (
        (stats.retries, counted(stats.retries, "retry", "retries")),
        (stats.throttled, counted(stats.throttled, "throttled response")),
        (stats.errors, counted(stats.errors, "failed request")),
        (stats.lost, f"{counted(stats.lost, 'request')} not recorded"),
    )
    return ", ".join(words for count, words in counts if count)
