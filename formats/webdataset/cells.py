"""The columns of a tar archive: the bytes of its files, or the values that they hold as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats.text_cells import NULLS, infer, parse_bytes
from pipeprof.formats.webdataset.members import ArchiveFile

Sample = dict[str, bytes]
"""The files of a sample, by their extension."""
HIDDEN = "__"
"""Extensions that begin so are no columns."""


@dataclass
class SampleGrouper:
    """Groups consecutive files of one name into samples."""

    _key: str | None = None
    _sample: Sample = field(default_factory=dict)

    def add(self, member: ArchiveFile) -> Iterator[Sample]:
        """Add a file, and yield the sample that ended before it. Raises `CorruptData`."""
        folder, slash, base = member.name.rpartition("/")
        stem, dot, extension = base.partition(".")
        if not stem or not dot or not extension:
            return  # it is no part of a sample
        key = folder + slash + stem
        if key != self._key:
            yield from self.finish()
            self._key = key
        if extension in self._sample:
            raise CorruptData(f"sample {key!r} has two files {extension!r}.")
        self._sample[extension] = member.data

    def finish(self) -> Iterator[Sample]:
        """Yield the last sample."""
        if self._key is not None:
            yield self._sample
        self._key, self._sample = None, {}


def names_of(samples: Sequence[Sample]) -> list[str]:
    """Return the extensions in the order in which they first come."""
    names = dict.fromkeys(name for sample in samples for name in sample)
    return [name for name in names if not name.startswith(HIDDEN)]


def infer_schema(
    samples: Sequence[Sample], names: Sequence[str], types: Mapping[str, pa.DataType]
) -> pa.Schema:
    """Return the columns: of ``types``, or of what the files hold as text, or else their bytes."""
    return pa.schema(
        [(name, types[name] if name in types else _infer(_column(samples, name))) for name in names]
    )


def to_batch(samples: Sequence[Sample], schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of ``samples``. Raises `CorruptData`, `SchemaMismatch`."""
    arrays = [parse_bytes(each.name, _column(samples, each.name), each.type) for each in schema]
    if not arrays:
        return pa.RecordBatch.from_pylist([{} for _ in samples], schema)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(samples: Sequence[Sample], name: str) -> pa.Array:
    return pa.array([sample.get(name) for sample in samples], pa.binary())


def _infer(cells: pa.Array) -> pa.DataType:
    try:
        text = cells.cast(pa.string())
    except pa.ArrowException:
        return pa.binary()
    return infer(text, _guess(text))


def _guess(text: pa.Array) -> pa.DataType:
    """Return the first type as which all texts can be read."""
    filled = text.filter(pc.invert(pc.is_in(text, value_set=pa.array(NULLS)))).drop_null()
    for dtype in (pa.int64(), pa.bool_(), pa.float64()) if len(filled) else ():
        try:
            pc.cast(filled, dtype)
        except pa.ArrowException:
            continue
        return dtype
    return pa.string()


def check_name(name: str) -> None:
    """Raise `SchemaMismatch` for a column that cannot be a file's extension."""
    if not name or name.startswith(HIDDEN) or "/" in name or "\0" in name:
        raise SchemaMismatch(
            f"column {name!r} cannot be the extension of a file in a tar archive; rename it."
        )
