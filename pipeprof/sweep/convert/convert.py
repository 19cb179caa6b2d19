"""The formats and storages of a sweep: copies of a sample, there while trials read them."""

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
from pipeprof.model import Conversion, Copy
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

Tell = Callable[[str, float], None]
"""Hears which copy is being written, and the share of it that is done."""


def plan_conversion(plan: SweepPlan, present: str) -> Conversion:
    """The copies to write, whose folders no one else uses, of data in the format ``present``.
    Nothing is written.

    Raises `UsageError`, `OutputError`.
    """
    spec, url = plan.spec.conversion, plan.urls[0]
    assert spec is not None
    for asked in spec.formats:
        parse_format(asked)
    if not spec.formats or not spec.storages:
        raise UsageError("give at least one of --formats, and one --storage")
    for given in plan.storages:
        if given != LOCAL and is_local(given) and not os.path.isdir(local_path(given)):
            raise UsageError(f"{given} is no folder; make it first, or choose another --storage")
    roots = {storage: new_root(storage, plan.folder) for storage in spec.storages}
    if LOCAL in roots and os.path.lexists(roots[LOCAL]):
        raise OutputError(
            f"{roots[LOCAL]} exists already, where the copies would be written; "
            "remove it, or choose another --out."
        )
    copies = tuple(
        copy
        for copy in plan_copies(spec, roots)
        if not _is_baseline(copy, present, url, plan.copy_url(copy))
    )
    if not copies:
        raise UsageError(
            f"{redact(url)} is {present} already, which is what it is compared with; name another "
            "format, a compression, or another --storage"
        )
    return Conversion(copies)


def _is_baseline(copy: Copy, present: str, source: str, target: str) -> bool:
    """Whether a copy would be the data as it is: no compression or layout was asked for, and it
    would lie where the data lies."""
    return copy.name == present and _device(source) == _device(target)


def _device(url: str) -> object:
    """Equal for two places on the same disk, or in the same bucket."""
    if not is_local(url):
        return urlsplit(url)[:2]
    place = Path(local_path(url).partition("*")[0])
    while not place.exists():
        place = place.parent
    return place.stat().st_dev


@contextmanager
def written(
    plan: SweepPlan, conversion: Conversion, wanted: Sequence[Copy], keep: bool, tell: Tell
) -> Iterator[tuple[Conversion, frozenset[int]]]:
    """Take the sample, and write the ``wanted`` copies of it; they are gone afterwards, whatever
    happens, unless they are whole and to be kept.

    Gives what trials can read: the copies, and the numbers of those splits of the data as they are
    of which the sample was taken.

    Raises `UsageError`, `StorageError`, `FormatError`, `OutputError`; `ProfileError` when the
    data is another than when the sweep began.
    """
    # what a sweep that was killed had left
    begun = [copy for copy in conversion.copies if copy.rows and not conversion.kept]
    whole = False
    try:
        sample = _plan_sample(plan)
        done, taken = {copy.url: copy for copy in conversion.copies}, conversion.sample
        for copy in wanted:
            writer = CopyWriter(
                copy,
                plan.copy_url(copy),
                sample.schema,
                sample.expected_bytes,
                max(plan.spec.workers),
                plan.storage_options,
            )
            writer.claim()
            begun.append(copy)
            done[copy.url] = writer.write(_followed(sample, copy, tell))
            if not done[copy.url].skipped:
                taken = taken or sample.taken
                if taken != sample.taken:
                    raise ProfileError(
                        "the data has changed since its sample was taken, so that copies would "
                        "differ; begin a new sweep."
                    )
        copies = tuple(done.values())
        if all(copy.skipped for copy in copies):
            raise OutputError(f"no format holds this data: {copies[0].name}: {copies[0].skipped}")
        whole = True
        kept = keep or conversion.kept
        yield replace(conversion, copies=copies, sample=taken, kept=kept), sample.numbers
    finally:
        if not (keep and whole):
            with _ctrl_c_ignored():
                _remove(begun, plan)


def _plan_sample(plan: SweepPlan) -> SampleReader:
    spec, asked = plan.spec, plan.spec.conversion
    assert asked is not None
    return plan_sample(
        plan.urls[0],
        spec.columns,
        asked.sample_bytes,
        asked.seed,
        plan.storage_options,
        spec.read,
        spec.on_error,
    )


def _followed(sample: SampleReader, copy: Copy, tell: Tell) -> Iterator[pa.RecordBatch]:
    seen = 0
    tell(copy.name, 0.0)
    for batch in sample:
        yield batch
        seen += batch.nbytes
        tell(copy.name, min(1.0, seen / max(sample.expected_bytes, 1)))


def _remove(copies: Sequence[Copy], plan: SweepPlan) -> None:
    """Each as far as it can be. Raises `OutputError` that names what is left."""
    left: dict[str, str] = {}
    for copy in copies:
        url = plan.copy_url(copy)
        try:
            remove_copy(url, plan.storage_options)
        except PipeprofError as error:
            left[redact(url)] = str(error)
    for root in dict.fromkeys(plan.copy_url(copy).rpartition("/")[0] for copy in copies):
        remove_folder(root, plan.storage_options)
    if left:
        raise OutputError(
            f"copies of the sample are left behind; remove {', '.join(left)} yourself: "
            f"{next(iter(left.values()))}"
        )


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """An impatient second Ctrl-C must not leave gigabytes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
