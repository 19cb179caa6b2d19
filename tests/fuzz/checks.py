"""What must hold of any bytes: a reader gives their rows, or refuses them by a `PipeprofError`."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from random import Random
from unittest import mock

import pyarrow as pa

from pipeprof import manifest, store
from pipeprof.errors import CorruptData, FormatError, PipeprofError
from pipeprof.formats import detect, get
from pipeprof.formats.base import (
    Fault,
    FilePlan,
    Format,
    ReadOptions,
    drive_plan,
    raise_fault,
)
from pipeprof.formats.tfrecord import columns
from pipeprof.formats.tfrecord.framing import Deframer
from pipeprof.formats.tfrecord.scan import Refused
from pipeprof.formats.types import has_tensor
from pipeprof.formats.webdataset.index import indexed_splits
from pipeprof.loaders.dataset.arrow_arrays import to_arrays
from pipeprof.loaders.dataset.batching import make_batch
from tests.contracts.format_samples import drive
from tests.fuzz.inputs import seeds

_OTHER = pa.schema([("id", pa.int64())])
"""Of another object of the data set, where none of this one's records can be read."""


def of_format(name: str) -> Callable[[bytes], None]:
    """Read an object, cut in a way that its bytes decide on; and if it gives all its rows, whole:
    they must be the same."""

    def check(data: bytes) -> None:
        fmt, rng = get(name), Random(zlib.crc32(data))
        with suppress(FormatError):  # users come past this; the reader must stand without it
            detect(f"x.{name}", data[:4096], data[-4096:])
        split_bytes = rng.choice((0, 64 if len(data) < 5000 else 1000, 1000, 2**23))
        options = ReadOptions(split_bytes, rng.choice((1, 17, 300, 2**22)))
        if rng.random() < 0.5:
            _rows(fmt, data, options, on_fault=bool)  # leaves out what it must
            return
        rows = _rows(fmt, data, options, raise_fault)
        with suppress(PipeprofError):  # where it is cut elsewhere, more damage may be seen
            assert rows == _rows(fmt, data, ReadOptions(split_bytes=0), raise_fault), "other rows"

    return check


def planned(name: str) -> Callable[[bytes], None]:
    """Plan an object, and decode nothing of it."""

    def check(data: bytes) -> None:
        fmt, rng = get(name), Random(zlib.crc32(data))
        options = ReadOptions(rng.choice((0, 64, 1000, 2**23)))
        drive_plan(fmt.plan(len(data), None, {}, options), _reader(data))

    return check


def indexed(data: bytes) -> None:
    """Read the index of an archive of 100,000 bytes."""
    for split in indexed_splits(data, 100_000, 1000):
        assert 0 <= split.start < split.end <= 100_000, "outside the archive"


def replaced(name: str) -> Callable[[bytes], None]:
    """Decode an object by the plan of another one, which it has replaced since."""

    def check(data: bytes) -> None:
        fmt, rng = get(name), Random(zlib.crc32(data))
        planned = max(seeds(name), key=lambda seed: _alike(seed, data))
        options = ReadOptions(rng.choice((0, 1000)), rng.choice((17, 300, 2**22)))
        made = drive_plan(fmt.plan(len(planned), None, {}, options), _reader(planned))
        data = data[: len(planned)].ljust(len(planned), b"\0")
        _decoded(fmt, data, made, options, rng.choice((raise_fault, bool)))

    return check


def by_protobuf(data: bytes) -> None:
    """Read TFRecord by the scan, and by protobuf alone: the same rows, or the same error.

    Protobuf also refuses a record for a damaged column that nobody asked for.
    """
    fmt, rng = get("tfrecord"), Random(zlib.crc32(data))
    options = ReadOptions(rng.choice((0, 1000)), rng.choice((17, 300, 2**22)))
    found = _outcome(fmt, data, options, raise_fault)
    with mock.patch.object(columns, "decode_scanned", side_effect=Refused):
        expected = _outcome(fmt, data, options, raise_fault)
    assert found == expected or "is not a tf.train.Example" in expected, "the scan read otherwise"


def _outcome(
    fmt: Format, data: bytes, options: ReadOptions, on_fault: Callable[[Fault], object]
) -> str:
    try:
        return _rows(fmt, data, options, on_fault)
    except FormatError as error:
        return f"{type(error)}: {error}"


def _alike(one: bytes, other: bytes) -> int:
    """Equal bytes among the first, which tell most seeds apart."""
    return sum(left == right for left, right in zip(one[:300], other[:300], strict=False))


def _rows(
    fmt: Format, data: bytes, options: ReadOptions, on_fault: Callable[[Fault], object]
) -> str:
    """Plan, decode and make tensors; the rows as text, in which NaN is itself."""
    made = drive_plan(fmt.plan(len(data), None, {}, options), _reader(data), on_fault)
    if made.left_out and made.schema is not None and zlib.crc32(data) % 2:  # as `objects=True`
        types = {field.name: field.type for field in made.left_out}
        names = [*made.schema.names, *types]
        made = drive_plan(fmt.plan(len(data), names, types, options), _reader(data), on_fault)
    return _decoded(fmt, data, made, options, on_fault)


def _reader(data: bytes) -> Callable[[int, int], memoryview]:
    def read(offset: int, length: int) -> memoryview:
        assert 0 <= offset <= offset + length <= len(data), "asks for bytes beyond the object"
        return memoryview(data)[offset : offset + length]

    return read


def _decoded(
    fmt: Format,
    data: bytes,
    made: FilePlan,
    options: ReadOptions,
    on_fault: Callable[[Fault], object],
) -> str:
    schema = _OTHER if made.schema is None else made.schema
    batches: list[pa.RecordBatch] = []
    for split in made.splits:
        decoding = fmt.decode(len(data), split, schema, options)
        batches += drive(decoding, _reader(data), on_fault)
    for batch in batches:
        assert batch.schema.equals(schema)
        _validate(batch, text=fmt.name != "parquet")
        supported = batch.drop_columns(_without_tensor(batch))
        make_batch(to_arrays(supported, null_masks=True), 0, supported.num_rows)
    return "".join(repr(row) for batch in batches for row in _as_bytes(batch).to_pylist())


def _as_bytes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Text as the bytes that tensors hold, which need not be UTF-8."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_string(field.type):
            batch = batch.set_column(index, field.name, batch.column(index).view(pa.binary()))
    return batch.drop_columns(_without_tensor(batch))


def _validate(batch: pa.RecordBatch, text: bool) -> None:
    """``text``: strings too. Parquet's writers promise UTF-8 and Arrow takes their word; tensors
    hold bytes in any case."""
    for column in batch.columns:
        if text or "string" not in str(column.type):
            column.validate(full=True)
        else:
            column.validate()


def _without_tensor(batch: pa.RecordBatch) -> list[str]:
    return [field.name for field in batch.schema if not has_tensor(field.type)]


def check_framing(data: bytes) -> None:
    """However the bytes are cut into blocks, the same records and the same error come out."""
    step = Random(zlib.crc32(data)).randrange(1, 64)
    assert _deframed(data, step) == _deframed(data, len(data) or 1)


def _deframed(data: bytes, step: int) -> tuple[list[bytes], int, str]:
    deframer, records, faults = Deframer(), [], 0
    deframer.size = len(data)
    try:
        for at in range(0, len(data), step):
            records += deframer.feed(data[at : at + step])
            faults += len(deframer.faults)
            if deframer.broken:
                break
        deframer.finish()
    except CorruptData as error:
        return records, faults, str(error)
    return records, faults, ""


def check_json(data: bytes) -> None:
    if b"pipeprof.dataset" in data:
        manifest.loads(data)
    else:
        store.dumps(store.loads(data))
