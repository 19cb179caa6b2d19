"""Generate a data set: plan it, keep what an earlier run finished, and write the remaining shards.

A folder is in one of four states. It is empty; it has a journal and the shards finished so far; it
has a manifest and all shards; or it holds files that pipeprof did not write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pipeprof import formats, manifest
from pipeprof.atomic import is_leftover
from pipeprof.bench_data import rows
from pipeprof.bench_data.shards import GeneratedShard, write_shards
from pipeprof.errors import OutputError, UsageError
from pipeprof.formats.types import format_type
from pipeprof.manifest import MANIFEST, Manifest, ManifestFile
from pipeprof.storage.urls import join, redact
from pipeprof.storage.write import object_sizes, open_object, read_object, remove_object
from pipeprof.units import format_bytes

JOURNAL: Final = "_pipeprof.partial.json"
"""File name of the plan, which stays in the folder until the data set is complete."""
SHARD_BYTES = 64 * 2**20
"""Default size of a shard in RAM."""
FEWEST_SHARDS = 8

_SUFFIXES = {"gzip": ".gz", "zlib": ".zz", "zstd": ".zst"}
"""Suffixes that a compression of the whole file adds to its name."""

Progress = Callable[[int, int], None]
"""Receives (done, total) in bytes in RAM, first with what an earlier run finished. It is not called
when the data set is complete already."""


@dataclass(frozen=True)
class GenerateSpec:
    """The data set to generate, and how."""

    url: str
    """A folder: a path, or any URL that fsspec supports."""
    kind: str
    format: str
    size_bytes: int
    """Approximate size of the rows in RAM; the same size gives the same rows in every format."""
    seed: int = 0
    shards: int | None = None
    """Number of files; ``None`` for 64 MiB in RAM each, but at least 8, or as many as rows."""
    compression: str | None = None
    """The codec; ``None`` for the format's default."""
    jobs: int = 1
    """Number of processes. More than 1 needs an importable main module, for multiprocessing."""
    overwrite: bool = False
    """Whether to replace another data set of pipeprof; other files are never replaced."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Options of the fsspec file system."""


def generate(spec: GenerateSpec, progress: Progress | None = None) -> Manifest:
    """Write the data set, or its missing shards, and return its manifest.

    Raises `UsageError`, `OutputError`, and `FormatError` for a damaged manifest in the folder.
    """
    plan = make_plan(spec)
    folder = _Folder(spec)
    complete = folder.prepare(plan, spec.overwrite)
    if len(complete) == plan.shards and folder.has(MANIFEST):
        folder.remove(JOURNAL)
        return folder.manifest(MANIFEST)
    complete |= _write_missing(spec, plan, complete, progress)
    result = replace(plan, files=tuple(replace(f, bytes=complete[f.name]) for f in plan.files))
    folder.write(MANIFEST, result)
    folder.remove(JOURNAL)
    return result


def make_plan(spec: GenerateSpec) -> Manifest:
    """Return the manifest as it will be, with sizes of 0 for the files. Raises `UsageError`."""
    kind = rows.get(spec.kind)
    encoding = formats.get(spec.format)
    compression = spec.compression or encoding.compressions[0]
    if compression not in encoding.compressions:
        raise UsageError(
            f"{spec.format} cannot be compressed with {compression!r}; "
            f"choose one of {', '.join(encoding.compressions)}."
        )
    if spec.size_bytes < 1 or spec.seed < 0:
        raise UsageError("--size must be at least 1 byte, and --seed not negative.")
    count = -(-spec.size_bytes // kind.mean_row_bytes)
    shards = spec.shards
    if shards is None:
        shards = min(count, max(FEWEST_SHARDS, -(-spec.size_bytes // SHARD_BYTES)))
    if not 1 <= shards <= count:
        raise UsageError(
            f"--shards {shards} is not possible: {format_bytes(spec.size_bytes)} are {count:,} "
            f"rows of {kind.name}, and each shard needs one; choose 1 to {count}."
        )
    suffix = suffix_of(spec.format, compression)
    return Manifest(
        kind=kind.name,
        format=spec.format,
        compression=compression,
        seed=spec.seed,
        generator=rows.GENERATOR,
        size_bytes=spec.size_bytes,
        rows=count,
        shards=shards,
        columns={column.name: format_type(column.type) for column in kind.schema},
        files=tuple(
            ManifestFile(f"part-{i:05d}-of-{shards:05d}{suffix}", 0, stop - start)
            for i, (start, stop) in enumerate(_bounds(count, shards))
        ),
    )


def suffix_of(format_name: str, compression: str) -> str:
    """Return the suffix of files of this format and compression, such as ``".csv.gz"``."""
    known = formats.get(format_name).suffixes
    longer = known[0] + _SUFFIXES.get(compression, "")
    return longer if longer in known else known[0]


def _bounds(count: int, shards: int) -> list[tuple[int, int]]:
    """Return the first row of each shard, and the row after its last."""
    return [(count * i // shards, count * (i + 1) // shards) for i in range(shards)]


def _write_missing(
    spec: GenerateSpec, plan: Manifest, complete: Mapping[str, int], progress: Progress | None
) -> dict[str, int]:
    """Write the shards that are not ``complete``, and return their names and bytes."""
    row_bytes = rows.get(plan.kind).mean_row_bytes
    shards = {
        file.name: GeneratedShard(
            join(spec.url, file.name),
            replace(plan, files=()),
            start,
            stop,
            needed_bytes=(plan.rows - start) * row_bytes,
            options=spec.options,
        )
        for file, (start, stop) in zip(plan.files, _bounds(plan.rows, plan.shards), strict=True)
        if file.name not in complete
    }
    done = plan.rows - sum(shard.stop - shard.start for shard in shards.values())

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done * row_bytes, plan.rows * row_bytes)

    advance(0)
    # fsspec's memory file system exists only in its own process
    jobs = 1 if spec.url.startswith("memory://") else spec.jobs
    sizes = write_shards(list(shards.values()), jobs, advance)
    return dict(zip(shards, sizes, strict=True))


class _Folder:
    """The folder of the data set, and the sizes of the files in it."""

    def __init__(self, spec: GenerateSpec) -> None:
        self._url = spec.url
        self._options = spec.options
        self._sizes = object_sizes(spec.url, spec.options)

    def has(self, name: str) -> bool:
        return name in self._sizes

    def manifest(self, name: str) -> Manifest:
        url = join(self._url, name)
        return manifest.loads(read_object(url, self._options), redact(url))

    def write(self, name: str, content: Manifest) -> None:
        with open_object(join(self._url, name), self._options) as sink:
            sink.write(manifest.dumps(content))
        self._sizes[name] = sink.size

    def remove(self, name: str) -> None:
        if self.has(name):
            remove_object(join(self._url, name), self._options)

    def prepare(self, plan: Manifest, overwrite: bool) -> dict[str, int]:
        """Return the names and bytes of complete shards of ``plan``, or clear the folder for it.

        Raises `OutputError` when the folder holds anything else.
        """
        found = {name: self.manifest(name) for name in (MANIFEST, JOURNAL) if self.has(name)}
        if MANIFEST in found and _same(found[MANIFEST], plan) and not overwrite:
            self._remove_leftovers(plan)
            files = found[MANIFEST].files
            return {f.name: f.bytes for f in files if self._sizes.get(f.name) == f.bytes}
        if list(found) == [JOURNAL] and _same(found[JOURNAL], plan):
            self._remove_leftovers(plan)
            # a shard gets its name only when it is complete
            return {f.name: self._sizes[f.name] for f in plan.files if self.has(f.name)}
        if found and not overwrite:
            raise OutputError(
                f"{redact(self._url)} holds another data set ({next(iter(found.values()))}); "
                "choose another folder, or --overwrite to replace it."
            )
        self._clear(found)
        self.write(JOURNAL, plan)
        return {}

    def _clear(self, found: Mapping[str, Manifest]) -> None:
        """Remove the manifests ``found`` and their files. Raises `OutputError` for other files."""
        named = {file.name for content in found.values() for file in content.files}
        visible = {name for name in self._sizes if not name.startswith(("_", "."))}
        foreign = sorted(visible - named)
        if foreign:
            raise OutputError(
                f"{redact(self._url)} holds files that pipeprof did not write, {foreign[0]} for "
                "one; choose another folder, or an empty one."
            )
        for content in found.values():
            self._remove_leftovers(content)
        for name in [*sorted(named), *found]:
            self.remove(name)
        self._sizes = {}

    def _remove_leftovers(self, content: Manifest) -> None:
        """Remove the unfinished files of a killed run."""
        targets = [MANIFEST, JOURNAL, *(file.name for file in content.files)]
        for name in [name for name in self._sizes if name.endswith(".tmp")]:
            if any(is_leftover(name, target) for target in targets):
                self.remove(name)


def _same(one: Manifest, other: Manifest) -> bool:
    """Return whether both have the same rows in the same shards, written or not."""
    return replace(one, files=()) == replace(other, files=())
