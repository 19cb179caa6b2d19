"""The formats and storages of a sweep: copies of a sample, there while trials read them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipeprof.errors import OutputError, PipeprofError, ProfileError, UsageError
from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.model import Conversion, ConversionSpec, Copy, Sample, SweepSpec
from pipeprof.storage.urls import is_local, local_path, redact
from pipeprof.sweep.convert.copies import (
    LOCAL,
    claim,
    new_root,
    parse_format,
    plan_copies,
    remove_copy,
    remove_folder,
    write_copy,
)
from pipeprof.sweep.convert.sample import SampleReader, plan_sample

Tell = Callable[[str, float], None]
"""Hears which copy is being written, and the share of it that is done."""


@dataclass(frozen=True)
class CopyPlaces:
    """URLs with the credentials that a saved sweep leaves out."""

    url: str
    """Of the data set."""
    names: tuple[str, ...]
    """`ConversionSpec.storages`."""
    storages: tuple[str, ...]
    """The same, with credentials."""
    options: Mapping[str, Any] | None = None
    """Of fsspec, for all of them."""

    def of(self, copy: Copy) -> str:
        """Where ``copy`` lies."""
        given = self.storages[self.names.index(copy.storage)]
        if given == LOCAL:
            return copy.url
        return given.rstrip("/") + copy.url.removeprefix(redact(given).rstrip("/"))


def plan_conversion(
    spec: ConversionSpec, places: CopyPlaces, data: FileDataset, out: Path
) -> Conversion:
    """The copies to write, whose folders no one else uses. Nothing is written.

    Raises `UsageError`, `OutputError`.
    """
    check(spec)
    for given in places.storages:
        if given != LOCAL and is_local(given) and not os.path.isdir(local_path(given)):
            raise UsageError(f"{given} is no folder; make it first, or choose another --storage")
    roots = {storage: new_root(storage, out) for storage in spec.storages}
    if LOCAL in roots and os.path.lexists(roots[LOCAL]):
        raise OutputError(
            f"{roots[LOCAL]} exists already, where the copies would be written; "
            "remove it, or choose another --out."
        )
    copies = tuple(
        copy for copy in plan_copies(spec, roots)
        if not _is_baseline(copy, data.source.format, places.url, places.of(copy))
    )  # fmt: skip
    if not copies:
        raise UsageError(
            f"{redact(places.url)} is {data.source.format} already, which is what it is compared "
            "with; name another format, a compression, or another --storage"
        )
    return Conversion(copies)


def check(spec: ConversionSpec) -> None:
    """Raises `UsageError`; needs no data."""
    for asked in spec.formats:
        parse_format(asked)
    if not spec.formats or not spec.storages:
        raise UsageError("give at least one of --formats, and one --storage")


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


@dataclass(frozen=True)
class Written:
    """What trials can read."""

    conversion: Conversion
    numbers: frozenset[int]
    """The splits of the data as it is, of which the sample was taken."""


@contextmanager
def written(
    spec: SweepSpec,
    conversion: Conversion,
    places: CopyPlaces,
    out: Path,
    wanted: Sequence[Copy],
    keep: bool,
    tell: Tell,
) -> Iterator[Written]:
    """Take the sample, and write the ``wanted`` copies of it; they are gone afterwards, whatever
    happens, unless they are whole and to be kept.

    Raises `UsageError`, `StorageError`, `FormatError`, `OutputError`; `ProfileError` when the
    data is another than when the sweep began.
    """
    asked = spec.conversion
    assert asked is not None
    # what a sweep that was killed had left
    begun = [copy for copy in conversion.copies if copy.rows and not conversion.kept]
    whole = False
    try:
        plan = plan_sample(
            places.url,
            spec.columns,
            asked.sample_bytes,
            asked.seed,
            places.options,
            spec.read,
            spec.on_error,
        )
        reader = SampleReader(plan)
        done, sample = {copy.url: copy for copy in conversion.copies}, conversion.sample
        for copy in wanted:
            url, expected = places.of(copy), plan.expected_bytes
            claim(copy, url, reader.schema, expected, places.options)
            begun.append(copy)
            done[copy.url] = write_copy(
                copy,
                url,
                _followed(reader, expected, copy, tell),
                reader.schema,
                expected,
                max(spec.workers),
                places.options,
            )
            if not done[copy.url].skipped:
                sample = sample or reader.sample
                _check_same(sample, reader.sample)
        copies = tuple(done.values())
        if all(copy.skipped for copy in copies):
            raise OutputError(f"no format holds this data: {copies[0].name}: {copies[0].skipped}")
        whole = True
        told = replace(conversion, copies=copies, sample=sample, kept=keep or conversion.kept)
        yield Written(told, plan.numbers)
    finally:
        if not (keep and whole):
            with _ctrl_c_ignored():
                _remove(begun, places)


def _followed(reader: SampleReader, expected: int, copy: Copy, tell: Tell) -> Iterator[Any]:
    seen = 0
    tell(copy.name, 0.0)
    for batch in reader:
        yield batch
        seen += batch.nbytes
        tell(copy.name, min(1.0, seen / max(expected, 1)))


def _check_same(before: Sample | None, now: Sample | None) -> None:
    if before != now:
        raise ProfileError(
            "the data has changed since its sample was taken, so that copies would differ; "
            "begin a new sweep."
        )


def _remove(copies: Sequence[Copy], places: CopyPlaces) -> None:
    """Each as far as it can be. Raises `OutputError` that names what is left."""
    left: dict[str, str] = {}
    for copy in copies:
        url = places.of(copy)
        try:
            remove_copy(url, places.options)
        except PipeprofError as error:
            left[redact(url)] = str(error)
    for root in dict.fromkeys(places.of(copy).rpartition("/")[0] for copy in copies):
        remove_folder(root, places.options)
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
