"""What a run asked of storage, request by request."""

from __future__ import annotations

from collections.abc import Callable

from pipeprof.model import Percentiles, Profile, RequestStats
from pipeprof.report.layout import Column, Page
from pipeprof.units import counted, format_bytes, format_duration, format_rate, percent


def requests(page: Page, profile: Profile) -> None:
    """Nothing when none was seen."""
    stats = profile.requests
    if stats is None:
        return
    rate = format_rate(stats.requests_per_s, "requests")
    page.heading("Requests of storage", f"{stats.count:,} in the whole run, {rate}")
    if stats.count:
        rows = [_row("size", stats.size, format_bytes)]
        if stats.first_byte_s is not None:
            rows.append(_row("to the first byte", stats.first_byte_s, format_duration))
        rows.append(_row("to the last byte", stats.latency_s, format_duration))
        page.table([Column(right=False), *(Column(name) for name in _FIGURES)], rows)
        page.line(_beside(stats))
    trouble = _trouble(stats)
    if trouble:
        page.line(trouble)


_FIGURES = ("mean", "p50", "p95", "p99")


def _row(name: str, figures: Percentiles, write: Callable[[float], str]) -> tuple[str, ...]:
    return (name, *(write(getattr(figures, figure)) for figure in _FIGURES))


def _beside(stats: RequestStats) -> str:
    said = [f"{stats.in_flight:.1f} under way at a time"]
    if stats.client_cpu_s is not None and stats.client_share is not None:
        said.append(
            f"{format_duration(stats.client_cpu_s)} of CPU each, {percent(stats.client_share)} of "
            "a core while a worker waits for its store"
        )
    fit = stats.fit
    if fit is not None:
        flow = f" + {format_rate(fit.bandwidth)}" if fit.bandwidth else ""
        said.append(
            f"by their sizes {format_duration(fit.latency_intercept_s)} each{flow}, R² {fit.r2:.2f}"
        )
    return "; ".join(said) + "."


def _trouble(stats: RequestStats) -> str:
    """Only what happened."""
    told = (
        (stats.retries, counted(stats.retries, "retry", "retries")),
        (stats.throttled, f"{counted(stats.throttled, 'answer')} to slow down"),
        (stats.errors, f"{counted(stats.errors, 'request')} given up"),
        (stats.lost, f"{counted(stats.lost, 'request')} not counted"),
    )
    return ", ".join(words for count, words in told if count)
