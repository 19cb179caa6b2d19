"""Plan the copies of a sample that a sweep reads, write them, and remove them afterwards."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from pipeprof.errors import OutputError, PipeprofError, ProfileError, UsageError
from pipeprof.model import Conversion, Copy, Sample
from pipeprof.storage.urls import is_local, local_path, redact
from pipeprof.sweep.convert.copies import (
    new_root,
    parse_format,
    plan_copies,
    remove_copy,
    remove_folder,
)
from pipeprof.sweep.convert.copy_writer import CopyWriter
from pipeprof.sweep.convert.sample import SampleReader, plan_sample
from pipeprof.sweep.plan import LOCAL, SweepPlan

Tick = Callable[[str, float], None]
"""Receives the name of the copy that is written, and the share of it that is done."""


def plan_conversion(plan: SweepPlan, current_format: str) -> Conversion:
    """Return the copies to write of data in ``current_format``, each in a folder of its own.
    Nothing is written. Raises `UsageError`, `OutputError`."""
    spec, url = plan.spec.conversion, plan.original
    assert spec is not None
    for requested in spec.formats:
        parse_format(requested)
    if not spec.formats or not spec.storages:
        raise UsageError("give at least one of --formats, and one --storage")
    for storage in plan.storages:
        if storage != LOCAL and is_local(storage) and not os.path.isdir(local_path(storage)):
            raise UsageError(f"{storage} is no folder; create it, or choose another --storage")
    roots = {storage: new_root(storage, plan.folder) for storage in spec.storages}
    if LOCAL in roots and os.path.lexists(roots[LOCAL]):
        raise OutputError(
            f"{roots[LOCAL]} exists already, where the copies would be written; "
            "remove it, or choose another --out."
        )
    copies = tuple(
        copy
        for copy in plan_copies(spec, roots)
        if not _is_baseline(copy, current_format, url, plan.copy_url(copy))
    )
    if not copies:
        raise UsageError(
            f"{redact(url)} is {current_format} already, which copies are compared with; name "
            "another format, a compression, or another --storage"
        )
    return Conversion(copies)


def _is_baseline(copy: Copy, current_format: str, source: str, target: str) -> bool:
    """Return whether a copy would equal the original data: same format, layout and device."""
    return copy.name == current_format and _device(source) == _device(target)


def _device(url: str) -> object:
    """Return an object that is equal for two URLs on the same disk or in the same bucket."""
    if not is_local(url):
        return urlsplit(url)[:2]
    path = Path(local_path(url).partition("*")[0])
    while not path.exists():
        path = path.parent
    return path.stat().st_dev


@contextmanager
def written_copies(
    plan: SweepPlan, conversion: Conversion, lacking: Sequence[Copy], keep: bool, tick: Tick
) -> Iterator[tuple[Conversion, frozenset[int]]]:
    """Take the sample, and write the ``lacking`` copies of it.

    The body is given the conversion with its written copies, and the numbers of the splits of the
    original data that were sampled. The copies are always removed afterwards, unless they are
    complete and ``keep`` is set.

    Raises `UsageError`, `StorageError`, `FormatError`, `OutputError`, and `ProfileError` when the
    data has changed since the sweep began.
    """
    # a sweep that was killed has left these
    created = [copy for copy in conversion.copies if copy.rows and not conversion.kept]
    complete = False
    try:
        reader, sample = _plan_sample(plan), conversion.sample
        copies = {copy.url: copy for copy in conversion.copies}
        for copy in lacking:
            writer = CopyWriter(
                copy,
                plan.copy_url(copy),
                reader.schema,
                reader.expected_bytes,
                max(plan.spec.workers),
                plan.storage_options,
            )
            writer.claim()
            created.append(copy)
            copies[copy.url] = writer.write(_report_progress(reader, copy, tick))
            if not copies[copy.url].skipped:
                sample = _same_sample(sample, reader)
        first, *_ = copies.values()
        if all(copy.skipped for copy in copies.values()):
            raise OutputError(f"no format holds this data: {first.name}: {first.skipped}")
        complete = True
        kept = keep or conversion.kept
        done = replace(conversion, copies=tuple(copies.values()), sample=sample, kept=kept)
        yield done, reader.numbers
    finally:
        if not (keep and complete):
            with _ctrl_c_ignored():
                _remove(created, plan)


def _same_sample(before: Sample | None, reader: SampleReader) -> Sample | None:
    """Return the sample of the last pass. Raises `ProfileError` when it differs from ``before``."""
    if before not in (None, reader.taken):
        raise ProfileError(
            "the data has changed since its sample was taken, so copies would differ; start a new "
            "sweep."
        )
    return reader.taken


def _plan_sample(plan: SweepPlan) -> SampleReader:
    spec, conversion = plan.spec, plan.spec.conversion
    assert conversion is not None
    return plan_sample(
        plan.original,
        spec.columns,
        conversion.sample_bytes,
        conversion.seed,
        plan.storage_options,
        spec.read,
        spec.on_error,
    )


def _report_progress(reader: SampleReader, copy: Copy, tick: Tick) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the sample, and report the share that was written."""
    written_bytes = 0
    tick(copy.name, 0.0)
    for batch in reader:
        yield batch
        written_bytes += batch.nbytes
        tick(copy.name, min(1.0, written_bytes / max(reader.expected_bytes, 1)))


def _remove(copies: Sequence[Copy], plan: SweepPlan) -> None:
    """Remove as many copies as possible. Raises `OutputError` that names the others."""
    failures: dict[str, str] = {}
    for copy in copies:
        url = plan.copy_url(copy)
        try:
            remove_copy(url, plan.storage_options)
        except PipeprofError as error:
            failures[redact(url)] = str(error)
    for root in dict.fromkeys(plan.copy_url(copy).rpartition("/")[0] for copy in copies):
        remove_folder(root, plan.storage_options)
    if failures:
        raise OutputError(
            f"copies of the sample are left behind; remove {', '.join(failures)} yourself: "
            f"{next(iter(failures.values()))}"
        )


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ignore Ctrl-C in the body, so that a second one leaves no gigabytes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
