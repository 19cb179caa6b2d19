"""Build the output of `pipeprof probe`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pipeprof.probe.concurrency_ramp import ProbeSpec
from pipeprof.probe.result import GpuDirect, Limits, LoadPoint, Needs, ProbeResult
from pipeprof.probe.target import Target
from pipeprof.report.document.blocks import (
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    columns,
    figures,
    row,
)
from pipeprof.storage.urls import redact
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_rate


def warn_of_cost(spec: ProbeSpec, target: Target) -> None:
    """Print the most that the probe will read and write, before it starts."""
    writes = ""
    if spec.write_bytes:
        writes = (
            f", and write {format_bytes(2 * spec.write_bytes)} and "
            f"{counted(spec.code_files, 'small object')}"
        )
    click.echo(
        f"{redact(spec.url)}: {counted(len(target.objects), 'object')}; the probe makes at most "
        f"{counted(spec.most_requests, 'read request')} for at most "
        f"{format_bytes(spec.most_bytes)} (--max-requests, --max-bytes){writes}. Stores may bill "
        "both.",
        err=True,
    )


def print_load_point(point: LoadPoint) -> None:
    """Print the result of one load while the probe runs."""
    demand = point.demand
    click.echo(
        f"  {demand.pattern} {format_bytes(demand.block_bytes)}, "
        f"{counted(demand.concurrency, 'concurrent request')}: {format_rate(point.bytes_per_s)}, "
        f"{format_count(point.requests_per_s)} requests/s",
        err=True,
    )


def probe_document(result: ProbeResult) -> Document:
    """Return the document of a probe from one host."""
    return Document(result.url, "probe", tuple(probe_sections(result)))


def probe_sections(
    result: ProbeResult, heading: str = "", notes_heading: str = ""
) -> Iterator[Section]:
    """Yield what one host measured, below ``heading``, and last its notes."""
    size = f"{counted(result.objects, 'object')}, {format_bytes(result.size_bytes)}"
    limits = result.limits
    opening = [f"{result.url}: {size}", f"{result.client}; caches: {result.cache}"]
    if limits is None:
        opening.append("Too few requests ended to report limits; increase --seconds.")
    read = f"Read {format_bytes(result.read_bytes)} in {counted(result.read_requests, 'request')}."
    ending = [*(f"Note: {note.rstrip('.')}." for note in result.notes), read]
    yield Section("store", heading, tuple(map(Paragraph, opening)))
    if limits is not None:
        yield from _limit_sections(result, limits)
    if result.gpu_direct is not None:
        text = _gpu_direct_text(result.gpu_direct)
        yield Section("gpu-direct", "GPUDirect Storage", (Paragraph(text),))
    yield Section("reads", notes_heading, tuple(map(Paragraph, ending)))


def _gpu_direct_text(found: GpuDirect) -> str:
    if not found.lacking:
        return (
            "Nothing is lacking for reads straight into a GPU's memory, of data that no worker "
            "decodes. NVIDIA's gdscheck shows whether the driver agrees."
        )
    return f"Not here. Lacking for reads into a GPU's memory: {'; '.join(found.lacking)}."


def _limit_sections(result: ProbeResult, limits: Limits) -> Iterator[Section]:
    names = (Column("", "name"), Column(), Column("", "text", spare=1))
    table = Table(names, tuple(row(*cells) for cells in _limit_rows(limits)))
    yield Section("limits", "Limits of the storage", (table,))
    if result.needs is not None:
        needs = figures(_need_rows(result.needs))
        yield Section("needs", "What training needs", (needs,))
    marked = any(point.client_bound for point in result.points)
    titles = ("block", "concurrency", "processes", "rate", "requests/s", "p50", "p99", "CPU cores")
    loads = Table(
        (Column("reads", "name"), *columns(titles)),
        tuple(row(*_load_row(p)) for p in result.points),
    )
    note = f"steady part of each load{'; !: client-bound' if marked else ''}"
    yield Section("loads", "Loads", (loads,), note)


def _limit_rows(limits: Limits) -> list[tuple[str, str, str]]:
    alone, block = limits.latency, format_bytes(limits.at.block_bytes)
    concurrency = counted(limits.at.concurrency, "concurrent request")
    tail = f"p95 {format_duration(alone.p95_s)}, p99 {format_duration(alone.p99_s)}"
    return [
        (
            "bandwidth",
            _rate_or_bound(format_rate(limits.bytes_per_s), limits.bandwidth_client_bound),
            f"{limits.at.pattern} reads of {block}, {concurrency}",
        ),
        ("one stream", format_rate(limits.stream_bytes_per_s), "one request after another"),
        (
            "requests",
            _rate_or_bound(
                f"{format_count(limits.requests_per_s)}/s", limits.requests_client_bound
            ),
            f"of {format_bytes(alone.demand.block_bytes)}",
        ),
        ("latency", format_duration(alone.p50_s), f"median of a single small request; {tail}"),
        ("client", format_duration(alone.client_s), "CPU time of this client per small request"),
        (
            "to saturate",
            f"{limits.needed_in_flight:.1f}",
            f"concurrent requests of {block}, by Little's law",
        ),
    ]


def _rate_or_bound(rate: str, client_bound: bool) -> str:
    return f"≥ {rate}, client-bound" if client_bound else rate


def _need_rows(needs: Needs) -> list[tuple[str, str]]:
    rows = [("feed", _feed_text(needs.feed))]
    saved, code = needs.checkpoint, needs.code
    if saved is not None:
        alone, while_feeding = map(
            format_rate, (saved.alone_bytes_per_s, saved.feeding_bytes_per_s)
        )
        text = (
            f"{format_bytes(saved.size_bytes)} saved at {alone} alone, {while_feeding} during reads"
        )
        rows.append(("checkpoint", f"{text}; reads meanwhile: {_feed_text(saved.feed)}"))
    if code is not None:
        tail = f"p50 {format_duration(code.p50_s)}, p99 {format_duration(code.p99_s)}"
        text = f"{format_count(code.files_per_s)} small files/s, one after another; {tail} per file"
        rows.append(("code", text))
    return rows


def _feed_text(point: LoadPoint | None) -> str:
    if point is None:
        return "too few requests ended"
    return f"{format_rate(point.bytes_per_s)} for {format_duration(point.seconds)}"


def _load_row(point: LoadPoint) -> tuple[str, ...]:
    demand = point.demand
    return (
        demand.pattern,
        format_bytes(demand.block_bytes),
        str(demand.concurrency),
        str(point.processes),
        format_rate(point.bytes_per_s),
        format_count(point.requests_per_s),
        format_duration(point.p50_s),
        format_duration(point.p99_s),
        f"{'! ' if point.client_bound else ''}{point.cpu_cores:.2f}",
    )
