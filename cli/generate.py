"""Implement `pipeprof generate`, which writes seeded data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from pipeprof.bench_data import KINDS
from pipeprof.cli.options import SIZE, storage_options_option
from pipeprof.cli.output import json_option
from pipeprof.formats import WRITTEN
from pipeprof.units import format_bytes, format_duration, format_share

if TYPE_CHECKING:
    from pipeprof.manifest import Manifest

_SECONDS_BETWEEN_LINES = 10

EXAMPLE = """\b
Examples:
  pipeprof generate data/csv --kind tabular --format csv --size 200MB
  pipeprof generate data/photos --kind images --format tfrecord --size 5GiB --shards 64
  pipeprof generate s3://bucket/tokens --kind tokens --format parquet --size 100GiB --json
"""


_DEFAULT_JOBS = 2
"""Few enough that memory stays below 500 MB on a machine of any size."""


@click.command(epilog=EXAMPLE)
@click.argument("url")
@click.option("--kind", type=click.Choice(KINDS), default="tabular", show_default=True,
              help="Content of a row: tabular has 26 columns, wide has 201, images a JPEG "
              "and its label, tokens a list of token ids.")  # fmt: skip
@click.option("--format", type=click.Choice(WRITTEN),
              required=True, help="File format.")  # fmt: skip
@click.option("--size", "size_bytes", type=SIZE, default="1GiB", show_default=True,
              help="Approximate size of the rows in RAM: the same size gives the same rows in "
              "every format. The size on storage differs, and is printed at the end.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="The same seed gives the same rows; a larger size adds rows.")  # fmt: skip
@click.option("--shards", type=click.IntRange(min=1), default=None,
              help="Number of files.  [default: one per 64 MiB in RAM, at least 8]")  # fmt: skip
@click.option("--compression", default=None, metavar="NAME",
              help="Compression; an unknown name lists those of the format.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), default=None,
              help="Number of writing processes, each with up to 200 MB of RAM.  "
              "[default: 2, or 1 on one core]")  # fmt: skip
@click.option("--overwrite", is_flag=True,
              help="Replace a data set of pipeprof here, but no other files.")  # fmt: skip
@storage_options_option
@click.option("--quiet", is_flag=True, help="Show no progress.")
@json_option
def command(
    jobs: int | None,
    storage_options: dict[str, Any] | None,
    quiet: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Write a seeded data set to the folder URL: a path, or any URL that fsspec supports.

    Each file appears only when it is complete, and the manifest _pipeprof.json last. Repeating the
    command writes only the files that are missing.
    """
    from pipeprof.bench_data.generate import GenerateSpec, generate
    from pipeprof.errors import OutputError
    from pipeprof.measure.environment import usable_cores

    jobs = jobs or min(_DEFAULT_JOBS, usable_cores())
    spec = GenerateSpec(jobs=jobs, options=storage_options or {}, **fields)
    started = monotonic()
    progress = GenerateProgress(show=not quiet)
    try:
        with progress:
            manifest = generate(spec, progress)
    except (KeyboardInterrupt, OutputError):
        if progress.began:
            click.echo("Finished files stay: repeat the command to continue.", err=True)
        raise
    click.echo(
        _summary(manifest, spec.url, monotonic() - started, progress.began, as_json), nl=False
    )


def _summary(manifest: Manifest, url: str, seconds: float, wrote: bool, as_json: bool) -> bytes:
    from pipeprof.manifest import dumps
    from pipeprof.storage.urls import redact

    if as_json:
        return dumps(manifest)
    done = (
        f"written in {format_duration(seconds)}" if wrote else "already complete: nothing written"
    )
    return (
        f"{redact(url)}: {manifest}, {format_bytes(manifest.bytes)} on storage; {done}\n"
    ).encode()


class GenerateProgress:
    """Show progress on stderr: a bar on a terminal, plain lines elsewhere."""

    def __init__(self, show: bool) -> None:
        self.began = False
        """Whether anything had to be written."""
        self._show = show
        self._stack = ExitStack()
        self._update: Callable[[int, int], None] | None = None

    def __enter__(self) -> GenerateProgress:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` bytes, as measured in RAM, are written."""
        if self._show and not self.began:
            terminal = Console(stderr=True)
            if terminal.is_terminal:
                self._update = self._stack.enter_context(_bar(terminal, done, total))
            else:
                self._update = GenerateProgressLines(done)
        self.began = True
        if self._update is not None:
            self._update(done, total)


@contextmanager
def _bar(terminal: Console, done: int, total: int) -> Iterator[Callable[[int, int], None]]:
    columns = (
        TextColumn("generating"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=terminal) as bar:
        task = bar.add_task("generating", total=total, completed=done)
        yield lambda done, total: bar.update(task, completed=done)


class GenerateProgressLines:
    """Print a line at once, and then at most every 10 seconds."""

    def __init__(self, done: int, now: Callable[[], float] = monotonic) -> None:
        self._first_done = done
        self._first_time = self._next_time = now()
        self._now = now

    def __call__(self, done: int, total: int) -> None:
        now = self._now()
        if now < self._next_time:
            return
        self._next_time = now + _SECONDS_BETWEEN_LINES
        line = f"generating {format_bytes(total)} of rows: {format_share(done / total)}"
        if self._first_done < done < total:
            rate = (done - self._first_done) / (now - self._first_time)
            line += f", about {format_duration((total - done) / rate)} left"
        click.echo(line, err=True)
