"""Implement `pipeprof probe`: the limits of a file system or bucket."""

from __future__ import annotations

import os
from typing import Any

import click

from pipeprof.cli.options import (
    SIZE,
    add_client,
    s3_client_option,
    show_listing_progress,
    storage_options_option,
)
from pipeprof.cli.output import json_option, print_json
from pipeprof.errors import UsageError

EXAMPLE = """\b
Examples:
  pipeprof probe /mnt/nvme/train
  pipeprof probe s3://bucket/train --seconds 120 --max-bytes 20GB --processes 4
  pipeprof probe /mnt/lustre/train --feed 60 --write 4GB
  pipeprof probe /mnt/lustre/train --block 1MiB --block 16MiB --in-flight 256 --json > probe.json
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
@storage_options_option
@s3_client_option
@json_option
def command(
    url: str,
    block_bytes: tuple[int, ...],
    write_bytes: int | None,
    storage_options: dict[str, Any] | None,
    s3_client: str | None,
    as_json: bool,
    **fields: Any,
) -> int:
    """Read the files or objects at URL, and report the limits of their storage.

    The probe makes random and sequential reads of several sizes. It doubles their concurrency until
    the throughput no longer grows. Reads of local files bypass the page cache where the file system
    allows it. Nothing is written without --write.
    """
    from pipeprof.cli.probe_page import print_load_point, probe_document, warn_of_cost
    from pipeprof.probe.concurrency_ramp import ProbeSpec, probe
    from pipeprof.probe.target import open_target
    from pipeprof.report.terminal.render import print_document
    from pipeprof.storage.local_reads import ALIGNMENT
    from pipeprof.storage.urls import is_local, local_path

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
    storage_options = add_client(storage_options, s3_client)
    with show_listing_progress(quiet=as_json):
        target = open_target(url, storage_options)
    try:
        if not as_json and not is_local(url):
            warn_of_cost(spec, target)
        on_point = (lambda point: None) if as_json else print_load_point
        result = probe(target, spec, on_point, storage_options)
    finally:
        target.close()
    if as_json:
        print_json(result.to_dict())
    else:
        print_document(probe_document(result))
    return 0
