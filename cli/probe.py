"""`pipeprof probe`: what can this storage give?"""

from __future__ import annotations

import os
from typing import Any

import click

from pipeprof.cli.options import (
    SIZE,
    listing_shown,
    s3_client_option,
    storage_options_option,
    with_client,
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
              help="For all of it.")  # fmt: skip
@click.option("--block", "block_bytes", type=SIZE, multiple=True,
              help="Size of a request; may be given several times.  [default: 4KiB, 64KiB, "
              "1MiB, 8MiB]")  # fmt: skip
@click.option("--in-flight", "most_in_flight", type=click.IntRange(min=1), default=64,
              show_default=True, help="The most requests under way at a time.")  # fmt: skip
@click.option("--processes", type=click.IntRange(min=1), default=None,
              help="That share these requests.  [default: 1, and more while their CPU time is the "
              "limit and cores are idle]")  # fmt: skip
@click.option("--max-bytes", "most_bytes", type=SIZE, default="8GB", show_default=True,
              help="Read no more than this; some stores bill it.")  # fmt: skip
@click.option("--max-requests", "most_requests", type=click.IntRange(min=1), default=100_000,
              show_default=True,
              help="Make no more requests than this; some stores bill them.")  # fmt: skip
@click.option("--feed", "feed_seconds", type=click.FloatRange(min=0), default=5.0,
              show_default=True, metavar="SECONDS",
              help="Keep the best load up for so long.")  # fmt: skip
@click.option("--write", "write_bytes", type=SIZE, default=None, metavar="SIZE",
              help="Also write below URL, which must be a folder: a checkpoint of this size, alone "
              "and while feeding, and small files. All are removed.")  # fmt: skip
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
    **asked: Any,
) -> int:
    """Read the files or objects at URL, and say what their storage can give.

    Random and sequential reads of several sizes, one at a time, two, four and so on, until more at
    a time give no more. Local files are read past the page cache where the file system allows it.
    Nothing is written, unless --write says so.
    """
    from pipeprof.cli.probe_page import probe_document, say, warn
    from pipeprof.probe.concurrency_ramp import ProbeSpec, probe
    from pipeprof.probe.target import open_target
    from pipeprof.report.terminal.render import print_document
    from pipeprof.storage.local_reads import ALIGNED
    from pipeprof.storage.urls import is_local, local_path

    uneven = [size for size in block_bytes if size % ALIGNED]
    if uneven and is_local(url):
        raise UsageError(
            f"--block {uneven[0]} is no multiple of {ALIGNED} bytes, as direct reads must be."
        )
    spec = ProbeSpec(
        url=url,
        block_bytes=block_bytes or ProbeSpec.block_bytes,
        write_bytes=write_bytes or 0,
        **asked,
    )
    if write_bytes and is_local(url) and not os.path.isdir(local_path(url)):
        raise UsageError(f"{url} is no folder; --write needs one to write into.")
    storage_options = with_client(storage_options, s3_client)
    with listing_shown(quiet=as_json):
        target = open_target(url, storage_options)
    try:
        if not as_json and not is_local(url):
            warn(spec, target)
        watch = (lambda point: None) if as_json else say
        result = probe(target, spec, watch, storage_options)
    finally:
        target.close()
    if as_json:
        print_json(result.to_dict())
    else:
        print_document(probe_document(result))
    return 0
