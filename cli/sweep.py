"""Implement `pipeprof sweep`: try loader settings on data sets."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.options import (
    INT_LIST,
    LOCAL_CACHE,
    SHARE,
    read_option,
    s3_client_option,
    show_listing_progress,
    split_client,
    storage_options_option,
)
from pipeprof.cli.output import (
    fail_if_starved_option,
    full_option,
    html_option,
    json_option,
    markdown_option,
    raise_if_starved,
    refuse_clashes,
    write_page,
)
from pipeprof.cli.sweep_convert import NAMES, conversion_options, conversion_spec
from pipeprof.cli.sweep_engine import add_engine_options, open_engine
from pipeprof.cli.sweep_outcome import print_outcome, print_saved_trials
from pipeprof.errors import PipeprofError, UsageError

if TYPE_CHECKING:
    from pipeprof.model import CacheWanted, SweepSpec

EXAMPLE = """\b
Examples:
  pipeprof sweep data/csv data/parquet --workers 0,1,2,4 --step-ms 10
  pipeprof sweep s3://bucket/data --accelerator resnet50/h100 --batch-size 400
  pipeprof sweep data/ --step-ms 5 --transform decode.py:decode --json
  pipeprof sweep data/csv --formats parquet:zstd,tfrecord --storage local,s3://bucket/tmp
  pipeprof sweep data/csv --reader own,polars,python --workers 1,2
  pipeprof sweep s3://bucket/data --local-cache /nvme/cache:200GB
  pipeprof sweep data/parquet --shuffle none,buffer:10000,full
  pipeprof sweep --loader train.py:make_loader --workers 0,2,4,8 --step-ms 20
  pipeprof sweep --script 'train.py --epochs 1' --workers 2,4,8
  pipeprof sweep --resume pipeprof-results/sweep-20260131-142501
  pipeprof sweep s3://bucket/data --on ray --on-options '{"num_cpus": 16, "num_gpus": 1}'
"""
_OPTIONS_NOT_SAVED = (
    "pipeprof: this sweep was begun with --storage-options, which are not saved: give them again, "
    "unless the environment provides the same"
)


def _columns(text: str) -> tuple[str, ...] | None:
    return tuple(text.split(",")) if text else None


@click.command(epilog=EXAMPLE)
@click.argument("urls", nargs=-1, metavar="URL...")
@click.option("--workers", type=INT_LIST(0), default="0,1,2,4", show_default=True,
              help="Numbers of DataLoader workers to try.")  # fmt: skip
@click.option("--prefetch", type=INT_LIST(1), default="2", show_default=True,
              help="Numbers of prefetched batches per worker to try.")  # fmt: skip
@click.option("--batch-size", "batch_sizes", type=INT_LIST(1), default=None,
              help="Batch sizes to try.  [default: 256; with --loader or --script, their "
              "own]")  # fmt: skip
@click.option("--step-ms", type=click.FloatRange(min=0), default=None,
              help="Emulate an accelerator that takes this time for a batch of the first size, and "
              "for other sizes in proportion.  [default: 10]")  # fmt: skip
@click.option("--accelerator", default=None, metavar="NAME",
              help="Emulate an accelerator of MLPerf Storage, e.g. retinanet/b200. Its step time "
              "is scaled to the batch size.")  # fmt: skip
@click.option("--step", default=None, metavar="MODULE:FUNCTION",
              help="Your own training step, called with each batch.")  # fmt: skip
@click.option("--loader", default=None, metavar="MODULE:FUNCTION",
              help="Instead of URLs: your own function that returns a DataLoader. It takes "
              "num_workers, and optionally prefetch_factor and batch_size.")  # fmt: skip
@click.option("--script", default=None, metavar="'train.py ARGS'",
              help="Instead of URLs: your own training script. It runs once per setting, which its "
              "DataLoaders get as by pipeprof run --set.")  # fmt: skip
@click.option("--transform", default=None, metavar="MODULE:FUNCTION",
              help="Your own function that decodes or augments batches in workers.")  # fmt: skip
@click.option("--columns", type=_columns, default=None, metavar="A,B,…",
              help="Read only these columns.")  # fmt: skip
@click.option("--reader", "readers", type=NAMES, default=None,
              help="Libraries to decode the files with, e.g. own,polars,python; see pipeprof "
              "readers.  [default: own]")  # fmt: skip
@click.option("--local-cache", type=LOCAL_CACHE, default=None,
              help="Also measure what a cache in this folder is worth, e.g. /nvme/cache:200GB. "
              "Nothing stays there.")  # fmt: skip
@click.option("--shuffle", type=NAMES, default=None,
              help="Also measure what these orders of rows cost, and how they mix, e.g. "
              "none,shards,blocks,buffer:10000,full.")  # fmt: skip
@click.option("--trial-time", "trial_s", type=click.FloatRange(min=0, min_open=True), default=3.0,
              show_default=True, help="Minimum seconds that a trial measures.")  # fmt: skip
@click.option("--warmup-time", "warmup_s", type=click.FloatRange(min=0), default=1.0,
              show_default=True, help="Minimum seconds of warm-up before each trial.")  # fmt: skip
@click.option("--cache", type=click.Choice(["cold", "warm", "as-is"]), default="cold",
              show_default=True, help="Before each trial, evict local files from memory (cold), "
              "read them into it (warm), or leave them (as-is).")  # fmt: skip
@read_option
@click.option("--on-error", type=click.Choice(["fail", "skip"]), default="fail", show_default=True,
              help="When data cannot be read, stop, or skip and count them.")  # fmt: skip
@click.option("--exhaustive", is_flag=True,
              help="Try every setting. By default, with more than six settings for a batch size, "
              "settings that cannot change the answer are left out.")  # fmt: skip
@click.option("--max-time", type=click.FloatRange(min=0, min_open=True), default=None,
              help="Start no trial after this many seconds; --resume continues.")  # fmt: skip
@click.option("--threshold", type=SHARE, default="5%", show_default=True,
              help="Starved fraction from which a setting counts as starved.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=None,
              help="Folder for results.  [default: pipeprof-results/sweep-DATE-TIME]")  # fmt: skip
@click.option("--resume", type=click.Path(path_type=Path), default=None,
              help="Continue the sweep in this folder with its settings. Storage options and URLs "
              "with secrets are not saved, so give them again.")  # fmt: skip
@add_engine_options
@conversion_options
@storage_options_option
@s3_client_option
@full_option
@html_option
@markdown_option
@fail_if_starved_option
@json_option
def command(
    urls: tuple[str, ...],
    resume: Path | None,
    out: Path | None,
    max_time: float | None,
    engine_name: str | None,
    engine_options: dict[str, Any] | None,
    storage_options: dict[str, Any] | None,
    s3_client: str | None,
    storages: tuple[str, ...] | None,
    keep: bool,
    full: bool,
    html: Path | None,
    markdown: bool,
    fail_if_starved: float | None,
    as_json: bool,
    readers: tuple[str, ...] | None,
    **fields: Any,
) -> int:
    """Try loader settings on the data at each URL, and report which one feeds the accelerator.

    Each trial runs a real DataLoader over the real files. It feeds an emulated accelerator (a
    sleep) or your own step. Results are saved after each trial, so Ctrl-C loses no finished trial.
    """
    from pipeprof.cli.sweep_progress import ProgressLines
    from pipeprof.formats.readers import each_reader
    from pipeprof.report.document.build import full_report
    from pipeprof.sweep.plan import new_folder, plan_remaining, plan_sweep
    from pipeprof.sweep.progress import SweepListener
    from pipeprof.sweep.warnings_once import each_warning_once

    refuse_clashes(markdown, as_json, html)
    if readers:
        if not urls:
            raise UsageError("--reader needs URLs of data sets")
        urls = tuple(each for url in urls for each in each_reader(url, readers))
    folder = resume or out or new_folder()
    with (
        each_warning_once(),
        open_engine(engine_name, engine_options, folder, fields["script"]) as engine,
    ):
        client, options = split_client(s3_client, storage_options)
        if resume is not None:
            plan = plan_remaining(resume, urls, options, storages, client, engine)
            if plan.spec.with_options and not options:
                click.echo(_OPTIONS_NOT_SAVED, err=True)
        else:
            spec = _spec(urls, storages, client, bool(options), **fields)
            with show_listing_progress(as_json):
                plan = plan_sweep(spec, folder, urls, options, storages, engine)
        from pipeprof.sweep.runner import run_sweep

        try:
            with nullcontext(SweepListener()) if as_json else ProgressLines() as listener:
                outcome = run_sweep(plan, listener, max_time, keep)
        except PipeprofError:
            print_saved_trials(plan.folder)
            raise
    print_outcome(outcome, plan.folder, full, markdown, as_json)
    if html is not None:
        write_page(full_report(outcome.result), html)
    if fail_if_starved is not None:
        raise_if_starved(outcome.result, str(plan.folder), fail_if_starved)
    return 130 if outcome.stopped == "interrupted" else 0


def _spec(
    urls: tuple[str, ...],
    storages: tuple[str, ...] | None,
    s3_client: str | None,
    with_options: bool,
    formats: tuple[str, ...] | None,
    sample_bytes: int | None,
    row_group_bytes: tuple[int, ...] | None,
    shard_bytes: tuple[int, ...] | None,
    batch_sizes: tuple[int, ...] | None,
    step_ms: float | None,
    cache: CacheWanted,
    local_cache: tuple[str, int | None] | None,
    shuffle: tuple[str, ...] | None,
    **fields: Any,
) -> SweepSpec:
    """Return the spec. ``fields`` are further fields of `SweepSpec`. Raises `UsageError`."""
    from pipeprof.model import SweepSpec
    from pipeprof.storage.urls import redact

    own = [fields[name] for name in ("loader", "script") if fields[name] is not None]
    if not urls and not own:
        raise UsageError("name at least one URL, or the folder of a sweep with --resume")
    if len(own) + bool(urls) > 1:
        raise UsageError("URLs, --loader and --script exclude each other; give one of them")
    if batch_sizes is None:
        batch_sizes = () if own else (256,)
    return SweepSpec(
        urls=tuple(own) or tuple(map(redact, urls)),
        batch_sizes=batch_sizes,
        step_s=_step_s(
            step_ms, fields["accelerator"], fields["step"], fields["script"], batch_sizes
        ),
        cache="as-is" if own else cache,
        conversion=conversion_spec(formats, storages, sample_bytes, row_group_bytes, shard_bytes),
        s3_client=s3_client,
        with_options=with_options,
        local_cache=local_cache[0] if local_cache else None,
        local_cache_bytes=local_cache[1] if local_cache else None,
        shuffle=shuffle or (),
        **fields,
    )


def _step_s(
    step_ms: float | None,
    accelerator: str | None,
    step: str | None,
    script: str | None,
    batch_sizes: tuple[int, ...],
) -> float | None:
    """Return the emulated step in seconds; ``None`` where the user provides the step."""
    from pipeprof.sizing.mlperf import find_workload

    if sum(value is not None for value in (step_ms, accelerator, step)) > 1:
        raise UsageError("--step-ms, --accelerator and --step exclude each other; give one")
    if step_ms is not None:
        return step_ms / 1000
    if accelerator is not None:
        if not batch_sizes:
            raise UsageError(
                "the step of --accelerator depends on the batch size: give --batch-size"
            )
        workload = find_workload(accelerator)
        if workload.note:
            click.echo(workload.note, err=True)
        return workload.step_s(batch_sizes[0])
    return 0.010 if step is None and script is None else None
