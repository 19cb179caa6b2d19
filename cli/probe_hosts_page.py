"""Build the output of `pipeprof probe` from many hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

import click

from pipeprof.cli.probe_page import probe_sections
from pipeprof.probe.hosts.curve import HostCurve, Limit
from pipeprof.probe.hosts.result import HostsPoint, HostsProbe, SharedCheckpoint
from pipeprof.report.document.blocks import (
    Chart,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    columns,
    figures,
    row,
)
from pipeprof.report.document.charts import OverHosts, RatePoint
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_rate

_LINE_STEPS = 32


def print_hosts_point(point: HostsPoint) -> None:
    """Print the result of one load while the probe runs."""
    demand = point.demand
    click.echo(
        f"  {counted(point.hosts, 'host')}, {demand.pattern} {format_bytes(demand.block_bytes)}, "
        f"{counted(demand.concurrency, 'concurrent request')} each: "
        f"{format_rate(point.bytes_per_s)}, {format_count(point.requests_per_s)} requests/s",
        err=True,
    )


def hosts_document(result: HostsProbe) -> Document:
    """Return the document of a probe from many hosts."""
    read = f"Read {format_bytes(result.read_bytes)} in "
    ending = [f"Note: {note.rstrip('.')}." for note in result.notes]
    ending.append(f"{read}{counted(result.read_requests, 'request')}, all hosts together.")
    return Document(
        title=f"{result.alone.url}, {counted(len(result.hosts), 'host')}",
        subject="probe",
        sections=(
            Section("hosts", "", (Paragraph(f"{_headline(result)}{_slow_names(result)}"),)),
            Section("limits-of-all", "Limits of hosts and storage", (figures(_limits(result)),)),
            *_curve(result),
            *_slow(result),
            Section("all-reads", "Notes", tuple(map(Paragraph, ending))),
            *probe_sections(result.alone, "The first host alone", "Notes on the first host"),
        ),
    )


def _headline(result: HostsProbe) -> str:
    curve, hosts = result.bandwidth, counted(len(result.hosts), "host")
    if curve is None:
        return "Too few requests ended to report limits; increase --seconds."
    each = format_rate(curve.per_host.value)
    if len(result.hosts) == 1:
        return f"This host gets {each}. What the storage gives to several takes several to show."
    if curve.total is None:
        reached = format_rate(curve.rate(curve.most_hosts))
        return (
            f"{hosts} do not reach the limit of the storage: each gets {each}, and together they "
            f"get {reached}."
        )
    total, knee = format_rate(curve.total.value), curve.knee or 0.0
    if knee < 1.2:
        return f"One host gets all that the storage gives: {total}."
    return (
        f"The storage gives {total} in all, and a host takes at most {each}: more than "
        f"{format_count(knee)} hosts bring no more."
    )


def _slow_names(result: HostsProbe) -> str:
    return f" Slow: {', '.join(each.host for each in result.slow)}." if result.slow else ""


def _limits(result: HostsProbe) -> Iterator[tuple[str, str]]:
    bandwidth, requests = result.bandwidth, result.requests
    if bandwidth is not None:
        yield "a host", _limit(bandwidth.per_host, format_rate)
        yield "the storage", _total(bandwidth, format_rate)
        if bandwidth.knee is not None:
            yield "knee", f"{format_count(bandwidth.knee)} hosts"
    if requests is not None:
        yield "requests of a host", _limit(requests.per_host, _requests)
        yield "requests of the storage", _total(requests, _requests)
    if result.feed is not None:
        seconds = max(point.seconds for point in result.feed.by_host.values())
        rate = format_rate(result.feed.bytes_per_s)
        yield "feed of all hosts", f"{rate} for {format_duration(seconds)}"
    if result.checkpoint is not None:
        yield from _saved(result.checkpoint)


def _saved(saved: SharedCheckpoint) -> Iterator[tuple[str, str]]:
    alone, feeding = map(format_rate, (saved.alone_bytes_per_s, saved.feeding_bytes_per_s))
    size = f"{counted(saved.hosts, 'host')} save {format_bytes(saved.size_bytes)} each"
    yield "checkpoint", f"{size}: {alone} together, {feeding} during reads"
    if saved.feed_bytes_per_s is not None:
        yield "reads meanwhile", format_rate(saved.feed_bytes_per_s)
    if saved.restore_bytes_per_s is not None:
        rate = format_rate(saved.restore_bytes_per_s)
        yield "restore", f"{rate}, each host what another one wrote"


def _requests(rate: float) -> str:
    return f"{format_count(rate)}/s"


def _limit(limit: Limit, shown: Callable[[float], str]) -> str:
    return f"{shown(limit.value)} ({shown(limit.low)} to {shown(limit.high)})"


def _total(curve: HostCurve, shown: Callable[[float], str]) -> str:
    if curve.total is not None:
        return _limit(curve.total, shown)
    return f"at least {shown(curve.rate(curve.most_hosts))}; these hosts do not reach its limit"


def _curve(result: HostsProbe) -> Iterator[Section]:
    if result.bandwidth is None:
        return
    titles = ("rate", "a host", "slowest", "fastest", "requests/s", "p50", "p99")
    rows = tuple(
        row(*_point_row(point)) for point in (*result.bandwidth_points, *result.request_points)
    )
    chart = Chart(
        "curve",
        "Bandwidth over hosts",
        "the rate of all hosts together, and the line that was fitted to it",
        OverHosts(
            tuple(
                RatePoint(
                    point.hosts,
                    point.bytes_per_s,
                    f"{counted(point.hosts, 'host')}: {format_rate(point.bytes_per_s)}",
                )
                for point in result.bandwidth_points
            ),
            _line(result.bandwidth),
        ),
    )
    names = (Column("hosts", "name"), Column("block", "name"))
    yield Section(
        "curve", "Loads of 1 and more hosts", (chart, Table((*names, *columns(titles)), rows))
    )


def _line(curve: HostCurve) -> tuple[tuple[float, float], ...]:
    """Return points of the fit. On the chart's logarithmic axis it is no straight line."""
    most = max(1.0, curve.most_hosts)
    places = {most ** (step / _LINE_STEPS) for step in range(_LINE_STEPS + 1)}
    if curve.knee is not None and 1 < curve.knee < most:
        places.add(curve.knee)
    return tuple((hosts, curve.rate(hosts)) for hosts in sorted(places))


def _point_row(point: HostsPoint) -> tuple[str, ...]:
    rates = [each.bytes_per_s for each in point.by_host.values()]
    return (
        str(point.hosts),
        format_bytes(point.demand.block_bytes),
        format_rate(point.bytes_per_s),
        format_rate(point.bytes_per_s / point.hosts),
        format_rate(min(rates)),
        format_rate(max(rates)),
        format_count(point.requests_per_s),
        format_duration(median(each.p50_s for each in point.by_host.values())),
        format_duration(max(each.p99_s for each in point.by_host.values())),
    )


def _slow(result: HostsProbe) -> Iterator[Section]:
    if result.slow:
        rows = tuple(
            row(each.host, format_rate(each.bytes_per_s), format_rate(each.others_bytes_per_s))
            for each in result.slow
        )
        titles = columns(("alone", "an ordinary host alone"))
        table = Table((Column("host", "name"), *titles), rows)
        yield Section("slow", "Slow hosts", (table,))
