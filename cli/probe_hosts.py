"""Run `pipeprof probe` from all hosts of a job, or of a Ray cluster."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.probe_hosts_page import print_hosts_point
from pipeprof.storage.urls import is_local, redact
from pipeprof.units import counted, format_bytes

if TYPE_CHECKING:
    from pipeprof.model import JobPlace
    from pipeprof.probe.concurrency_ramp import ProbeSpec
    from pipeprof.probe.hosts.orders import Team
    from pipeprof.probe.hosts.result import HostsProbe


def job_of_probe() -> JobPlace | None:
    """Return the place of this process in a job of several ranks; ``None`` where it is alone."""
    from pipeprof.measure.job_place import find_job_place

    place = find_job_place()
    return place if place is not None and (place.world_size or 1) > 1 else None


def probe_from_ray(
    address: str, hosts: int | None, spec: ProbeSpec, options: dict[str, Any] | None, quiet: bool
) -> HostsProbe:
    """Probe from an actor on each node of a Ray cluster."""
    from pipeprof.probe.hosts.ray_team import RayTeam

    with closing(RayTeam(address, hosts, spec, options)) as team:
        return _probed(team, spec, quiet)


def probe_from_job(
    place: JobPlace, spec: ProbeSpec, options: dict[str, Any] | None, quiet: bool
) -> HostsProbe | None:
    """Probe from a process on each host of a job. Returns ``None`` in all processes but one."""
    from pipeprof.probe.hosts.member import Member
    from pipeprof.probe.hosts.store_team import (
        StoreTeam,
        find_meeting_point,
        follow,
        join,
        open_store,
    )

    point = find_meeting_point(place)
    if place.rank == 0 and not quiet:
        click.echo(
            f"Waiting at {point.host}, port {point.port}, for the {place.world_size} ranks of this "
            "job, whose hosts probe together.",
            err=True,
        )
    store = open_store(point, place.attempt)
    host = join(store, place)
    if host is None:
        return None
    member = Member(spec, options)
    try:
        if host:
            follow(store, host, member)
            return None
        team = StoreTeam(store, place, member)
        with closing(team):
            return _probed(team, spec, quiet)
    finally:
        member.close()


def _probed(team: Team, spec: ProbeSpec, quiet: bool) -> HostsProbe:
    from pipeprof.probe.hosts.plan import probe_hosts

    if not quiet:
        click.echo(_announcement(team, spec), err=True)
    return probe_hosts(team, spec, (lambda point: None) if quiet else print_hosts_point)


def _announcement(team: Team, spec: ProbeSpec) -> str:
    text = f"{redact(spec.url)}: a probe from {counted(len(team.hosts), 'host')}"
    if is_local(spec.url):
        return f"{text}."
    writes = f", and write {format_bytes(2 * len(team.hosts) * spec.write_bytes)}"
    return (
        f"{text}; together they make at most {counted(spec.most_requests, 'read request')} for at "
        f"most {format_bytes(spec.most_bytes)} (--max-requests, --max-bytes)"
        f"{writes if spec.write_bytes else ''}. Stores may bill both."
    )
