"""Implement `pipeprof probe`: the limits of a file system or bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.options import (
    SIZE,
    add_client,
    s3_client_option,
    show_listing_progress,
    storage_options_option,
)
from pipeprof.cli.output import (
    html_option,
    json_option,
    print_json,
    refuse_clashes,
    write_page,
)
from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from pipeprof.probe.concurrency_ramp import ProbeSpec
    from pipeprof.probe.hosts.result import HostsProbe
    from pipeprof.probe.result import ProbeResult

EXAMPLE = """\b
Examples:
  pipeprof probe /mnt/nvme/train
  pipeprof probe s3://bucket/train --seconds 120 --max-bytes 20GB --processes 4
  pipeprof probe /mnt/lustre/train --feed 60 --write 4GB
  pipeprof probe /mnt/lustre/train --block 1MiB --block 16MiB --in-flight 256 --json > probe.json
  srun --nodes 16 --ntasks-per-node 1 pipeprof probe /mnt/lustre/train --html probe.html
  pipeprof probe s3://bucket/train --ray auto --hosts 16
"""


@click.command(epilog=EXAMPLE)
@click.argument("url")
@click.option("--seconds", type=click.FloatRange(min=1), default=30.0, show_default=True,
              help="Duration of the whole probe.")  # fmt: skip
@click.option("--block", "block_bytes", type=SIZE, multiple=True,
              help="Request size; may be repeated.  [default: 4KiB, 64KiB, "
              "1MiB, 8MiB]")  # fmt: skip
@click.option("--in-flight", "most_in_flight", type=click.IntRange(min=1), default=64,
              show_default=True, help="Maximum number of concurrent requests.")  # fmt: skip
@click.option("--processes", type=click.IntRange(min=1), default=None,
              help="Processes that share these requests.  [default: 1, and more while CPU time is "
              "the limit and cores are idle]")  # fmt: skip
@click.option("--max-bytes", "most_bytes", type=SIZE, default="8GB", show_default=True,
              help="Read at most this much; some stores bill it.")  # fmt: skip
@click.option("--max-requests", "most_requests", type=click.IntRange(min=1), default=100_000,
              show_default=True,
              help="Make at most this many requests; some stores bill them.")  # fmt: skip
@click.option("--feed", "feed_seconds", type=click.FloatRange(min=0), default=5.0,
              show_default=True, metavar="SECONDS",
              help="Sustain the best load for this long.")  # fmt: skip
@click.option("--write", "write_bytes", type=SIZE, default=None, metavar="SIZE",
              help="Also write to URL, which must be a folder: a checkpoint of this size, first "
              "alone and then during reads, and small files. All of them are removed.")  # fmt: skip
@click.option("--ray", default=None, metavar="ADDRESS",
              help="Probe from the nodes of this Ray cluster at once; auto finds it.")  # fmt: skip
@click.option("--hosts", type=click.IntRange(min=1), default=None,
              help="Nodes of the Ray cluster that take part.  [default: all]")  # fmt: skip
@storage_options_option
@s3_client_option
@html_option
@json_option
def command(
    url: str,
    block_bytes: tuple[int, ...],
    write_bytes: int | None,
    ray: str | None,
    hosts: int | None,
    storage_options: dict[str, Any] | None,
    s3_client: str | None,
    html: Path | None,
    as_json: bool,
    **fields: Any,
) -> int:
    """Read the files or objects at URL, and report the limits of their storage.

    The probe makes random and sequential reads of several sizes. It doubles their concurrency until
    the throughput no longer grows. Reads of local files bypass the page cache where the file system
    allows it. Nothing is written without --write.

    Started by torchrun, srun or mpirun, or with --ray, all hosts read at once: 1, 2, 4 and so on.
    The report then shows the limits of a host and of the storage.
    """
    from pipeprof.cli.probe_hosts import job_of_probe, probe_from_job, probe_from_ray
    from pipeprof.probe.concurrency_ramp import ProbeSpec
    from pipeprof.storage.local_reads import ALIGNMENT
    from pipeprof.storage.urls import is_local, local_path

    refuse_clashes(False, as_json, html)
    if hosts and not ray:
        raise UsageError("--hosts is for --ray; a launcher such as srun sets their number itself.")
    unaligned = [size for size in block_bytes if size % ALIGNMENT]
    if unaligned and is_local(url):
        raise UsageError(
            f"--block {unaligned[0]} must be a multiple of {ALIGNMENT} bytes for direct reads."
        )
    spec = ProbeSpec(
        url=url,
        block_bytes=block_bytes or ProbeSpec.block_bytes,
        write_bytes=write_bytes or 0,
        **fields,
    )
    if write_bytes and is_local(url) and not os.path.isdir(local_path(url)):
        raise UsageError(f"{url} is not a folder; --write needs one to write into.")
    options = add_client(storage_options, s3_client)
    found: ProbeResult | HostsProbe | None
    if ray:
        found = probe_from_ray(ray, hosts, spec, options, quiet=as_json)
    elif (place := job_of_probe()) is not None:
        found = probe_from_job(place, spec, options, quiet=as_json)
    else:
        found = _probe_alone(spec, options, quiet=as_json)
    if found is not None:  # else another process of the job reports
        _show(found, html, as_json)
    return 0


def _probe_alone(spec: ProbeSpec, options: dict[str, Any] | None, quiet: bool) -> ProbeResult:
    from pipeprof.cli.probe_page import print_load_point, warn_of_cost
    from pipeprof.probe.concurrency_ramp import probe
    from pipeprof.probe.target import open_target
    from pipeprof.storage.urls import is_local

    with show_listing_progress(quiet=quiet):
        target = open_target(spec.url, options)
    try:
        if not quiet and not is_local(spec.url):
            warn_of_cost(spec, target)
        return probe(target, spec, (lambda point: None) if quiet else print_load_point, options)
    finally:
        target.close()


def _show(found: ProbeResult | HostsProbe, html: Path | None, as_json: bool) -> None:
    from pipeprof.cli.probe_hosts_page import hosts_document
    from pipeprof.cli.probe_page import probe_document
    from pipeprof.probe.result import ProbeResult
    from pipeprof.report.terminal.render import print_document

    document = probe_document(found) if isinstance(found, ProbeResult) else hosts_document(found)
    if html is not None:
        write_page(document, html)
    if as_json:
        print_json(found.to_dict())
    elif html is None:
        print_document(document)
