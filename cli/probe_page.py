"""What `pipeprof probe` prints."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pipeprof.probe.concurrency_ramp import ProbeSpec
from pipeprof.probe.result import Limits, LoadPoint, Needs, ProbeResult
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


def warn(spec: ProbeSpec, target: Target) -> None:
    """What it may cost, before it costs anything."""
    writes = ""
    if spec.write_bytes:
        writes = (
            f", and write {format_bytes(2 * spec.write_bytes)} and "
            f"{counted(spec.code_files, 'small object')}"
        )
    click.echo(
        f"{redact(spec.url)}: {counted(len(target.objects), 'object')}; this will make at most "
        f"{counted(spec.most_requests, 'read request')} for at most "
        f"{format_bytes(spec.most_bytes)} (--max-requests, --max-bytes){writes}. Stores may bill "
        "both.",
        err=True,
    )


def say(point: LoadPoint) -> None:
    """While it goes on."""
    demand = point.demand
    click.echo(
        f"  {demand.pattern} {format_bytes(demand.block_bytes)}, "
        f"{counted(demand.concurrency, 'request')} under way: {format_rate(point.bytes_per_s)}, "
        f"{format_count(point.requests_per_s)} requests/s",
        err=True,
    )


def probe_document(result: ProbeResult) -> Document:
    size = f"{counted(result.objects, 'object')}, {format_bytes(result.size_bytes)}"
    found = result.limits
    opening = [f"{result.url}: {size}", f"{result.client}; caches: {result.cache}"]
    if found is None:
        opening.append("Too little came back to say anything; give it more --seconds.")
    read = f"Read {format_bytes(result.read_bytes)} in {counted(result.read_requests, 'request')}."
    ending = [*(f"Note: {note.rstrip('.')}." for note in result.notes), read]
    return Document(
        title=result.url,
        subject="probe",
        sections=(
            Section("store", "", tuple(map(Paragraph, opening))),
            *(_found(result, found) if found is not None else ()),
            Section("reads", "", tuple(map(Paragraph, ending))),
        ),
    )


def _found(result: ProbeResult, found: Limits) -> Iterator[Section]:
    names = (Column("", "name"), Column(), Column("", "text", spare=1))
    limits = Table(names, tuple(row(*cells) for cells in _limits(found)))
    yield Section("limits", "What it can give", (limits,))
    if result.needs is not None:
        needs = figures(_needs(result.needs))
        yield Section("needs", "What training needs of it", (needs,))
    marked = any(point.client_bound for point in result.points)
    titles = ("block", "under way", "processes", "rate", "requests/s", "p50", "p99", "CPU cores")
    loads = Table(
        (Column("reads", "name"), *columns(titles)), tuple(row(*_row(p)) for p in result.points)
    )
    note = f"in the steady part of each{'; !: client-bound' if marked else ''}"
    yield Section("loads", "Loads", (loads,), note)


def _limits(found: Limits) -> list[tuple[str, str, str]]:
    alone, block = found.latency, format_bytes(found.at.block_bytes)
    under_way = f"{counted(found.at.concurrency, 'request')} under way"
    tail = f"p95 {format_duration(alone.p95_s)}, p99 {format_duration(alone.p99_s)}"
    return [
        (
            "bandwidth",
            _known(format_rate(found.bytes_per_s), found.bandwidth_client_bound),
            f"{found.at.pattern} reads of {block}, {under_way}",
        ),
        ("one stream", format_rate(found.stream_bytes_per_s), "one request after another"),
        (
            "requests",
            _known(f"{format_count(found.requests_per_s)}/s", found.requests_client_bound),
            f"of {format_bytes(alone.demand.block_bytes)}",
        ),
        ("latency", format_duration(alone.p50_s), f"median of a small request alone; {tail}"),
        ("client", format_duration(alone.client_s), "of this client's CPU for each of these"),
        (
            "to fill it",
            f"{found.needed_in_flight:.1f}",
            f"requests of {block} under way, by Little's law",
        ),
    ]


def _known(rate: str, client_bound: bool) -> str:
    return f"≥ {rate}, client-bound" if client_bound else rate


def _needs(needs: Needs) -> list[tuple[str, str]]:
    rows = [("feed", _fed(needs.feed))]
    saved, code = needs.checkpoint, needs.code
    if saved is not None:
        alone, beside = map(format_rate, (saved.alone_bytes_per_s, saved.feeding_bytes_per_s))
        said = f"{format_bytes(saved.size_bytes)} kept at {alone} alone, {beside} while feeding"
        rows.append(("checkpoint", f"{said}; the feed then: {_fed(saved.feed)}"))
    if code is not None:
        tail = f"p50 {format_duration(code.p50_s)}, p99 {format_duration(code.p99_s)}"
        said = f"{format_count(code.files_per_s)} small files/s, one after another; {tail} a file"
        rows.append(("code", said))
    return rows


def _fed(point: LoadPoint | None) -> str:
    if point is None:
        return "too little came to tell"
    return f"{format_rate(point.bytes_per_s)} for {format_duration(point.seconds)}"


def _row(point: LoadPoint) -> tuple[str, ...]:
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
