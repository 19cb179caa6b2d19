"""What is fuzzed: everything that turns bytes from outside into something else.

A target makes damaged inputs, and checks one: it returns when the input was read, and raises a
`PipeprofError` when it was refused. Anything else is a fault of the reader.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof import manifest, store
from pipeprof.errors import CorruptData, FormatError, PipeprofError
from pipeprof.formats import detect, get
from pipeprof.formats.base import Fault, FilePlan, Format, ReadOptions, drive, drive_plan, give_up
from pipeprof.formats.compiled import SWITCH
from pipeprof.formats.framing import Deframer, frame
from pipeprof.formats.types import is_list
from pipeprof.loaders.batcher import to_tensors
from pipeprof.manifest import Manifest, ManifestFile
from tests.contracts.format_contract import EVERY_TYPE, INFERRED, SMALL, encode
from tests.fuzz.mutate import mutated
from tests.kernels import load_all
from tests.samples import sample_profile, sample_sweep

CORPUS = Path(__file__).parent.parent / "formats" / "corpus"
_OTHER = pa.schema([("id", pa.int64())])
"""Of another object of the data set, where none of this one's records can be read."""
_LARGEST_SEED = 20_000
"""Bytes: in larger ones, few faults hit what steers."""
SCALARS = pa.table(
    {f"feature_{i:02}": pa.array([j * i / 7 for j in range(40)], pa.float32()) for i in range(6)}
    | {"label": pa.array(range(-20, 20), pa.int64())}
)
"""Enough rows for TFRecord's scan, and for Parquet's bit-packed runs."""
LISTS = pa.table({"ids": [[j % 7 for j in range(i % 5 + 1)] for i in range(60)]})
"""None of them null or empty, as kernels read Parquet's."""
NULLS = pa.table(
    {
        "feature": pa.array([None if i % 7 < 3 else i / 7 for i in range(90)], pa.float32()),
        "label": pa.array([None if 20 < i < 60 else i % 5 for i in range(90)], pa.int64()),
        "word": [None if i % 4 == 1 else "word"[: i % 5] for i in range(90)],
        "none": pa.array([None] * 90, pa.int32()),
    }
)
"""One by one, in runs, and nothing else."""
_TABLES = (SMALL, INFERRED, EVERY_TYPE, SCALARS)


@dataclass(frozen=True)
class Target:
    name: str
    make: Callable[[Random], bytes]
    """A damaged object."""
    check: Callable[[bytes], object]

    def __str__(self) -> str:
        return self.name


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
        rows = _rows(fmt, data, options, give_up)
        with suppress(PipeprofError):  # where it is cut elsewhere, more damage may be seen
            assert rows == _rows(fmt, data, ReadOptions(split_bytes=0), give_up), "other rows"

    return check


def replaced(name: str) -> Callable[[bytes], None]:
    """Decode an object by the plan of another one, which it has replaced since."""

    def check(data: bytes) -> None:
        fmt, rng = get(name), Random(zlib.crc32(data))
        planned = max(_seeds(name), key=lambda seed: _alike(seed, data))
        options = ReadOptions(rng.choice((0, 1000)), rng.choice((17, 300, 2**22)))
        made = drive_plan(fmt.plan(len(planned), None, {}, options), _reader(planned))
        data = data[: len(planned)].ljust(len(planned), b"\0")
        _decoded(fmt, data, made, options, rng.choice((give_up, bool)))

    return check


def with_kernels(name: str) -> Callable[[bytes], None]:
    """Read an object by compiled kernels and without: the same rows, or the same words."""

    def check(data: bytes) -> None:
        fmt, rng = get(name), Random(zlib.crc32(data))
        options = ReadOptions(rng.choice((0, 1000)), rng.choice((17, 300, 2**22)))
        on_fault = rng.choice((give_up, bool))
        found = _told(fmt, data, options, on_fault)
        os.environ[SWITCH] = "0"
        try:
            assert found == _told(fmt, data, options, on_fault), "kernels read otherwise"
        finally:
            del os.environ[SWITCH]

    return check


def _told(
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
        to_tensors(batch.drop_columns(_without_tensor(batch)), null_masks=True)
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
    """Lists of text or of bytes: `to_tensors` refuses them, and would all that is beside them."""
    flat = (pa.string(), pa.binary())
    return [f.name for f in batch.schema if is_list(f.type) and f.type.value_type in flat]


def _csv(rng: Random) -> bytes:
    return mutated(rng.choice(_seeds("csv")), rng, _seeds("csv"))


def _csv_gzip(rng: Random) -> bytes:
    return _packed(_csv(rng), rng, "gzip")


def _parquet(rng: Random) -> bytes:
    return mutated(rng.choice(_seeds("parquet")), rng, _seeds("parquet"))


def _parquet_footer(rng: Random) -> bytes:
    """Only the footer is damaged, and its length told rightly."""
    data = rng.choice(_seeds("parquet"))
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = mutated(data[start:-8], rng, [data[start:-8]])
    return b"".join((data[:start], footer, len(footer).to_bytes(4, "little"), b"PAR1"))


def _tfrecord(rng: Random) -> bytes:
    return mutated(rng.choice(_seeds("tfrecord")), rng, _seeds("tfrecord"))


def _tfrecord_packed(rng: Random) -> bytes:
    return _packed(_tfrecord(rng), rng, rng.choice(("gzip", "zlib")))


def _example(rng: Random) -> bytes:
    """Only the messages are damaged: their lengths and CRCs are right."""
    records = list(rng.choice(_payloads()))
    for index in rng.choices(range(len(records)), k=rng.choice((1, 1, 2, 5))):
        records[index] = mutated(records[index], rng, records)
    return b"".join(map(frame, records))


def _framing(rng: Random) -> bytes:
    return mutated(frame(b"") + frame(b"x" * 40) + frame(bytes(300)), rng, _seeds("tfrecord"))


def _check_framing(data: bytes) -> None:
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


def _json(rng: Random) -> bytes:
    return mutated(rng.choice(_documents()), rng, _documents())


def _packed(data: bytes, rng: Random, codec: str) -> bytes:
    """Compressed; now and then the stream itself is damaged too."""
    packed = gzip.compress(data, 1) if codec == "gzip" else zlib.compress(data, 1)
    return mutated(packed, rng, [packed]) if rng.random() < 0.2 else packed


@cache
def _seeds(name: str) -> tuple[bytes, ...]:
    """Valid objects of a format: of our own writer, and the small ones of the corpus."""
    load_all()
    own = (encode(get(name), table) for table in _TABLES)
    files = sorted(CORPUS.glob(f"{name}/**/*.{name}"))
    others = (path.read_bytes() for path in files if path.stat().st_size <= _LARGEST_SEED)
    return (*own, *(_plain_parquet() if name == "parquet" else ()), *others)


def _plain_parquet() -> Iterator[bytes]:
    """Pages without checksums: a flipped bit gets through to the decoders."""
    for table in (*_TABLES, LISTS, NULLS):
        for compression, version in (("none", "1.0"), ("snappy", "2.0"), ("snappy", "1.0")):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression=compression, data_page_version=version)
            yield sink.getvalue().to_pybytes()


@cache
def _payloads() -> tuple[tuple[bytes, ...], ...]:
    """The records of each seed."""
    return tuple(tuple(Deframer().feed(data)) for data in _seeds("tfrecord"))


@cache
def _documents() -> tuple[bytes, ...]:
    files = (ManifestFile("a.csv", 100, 10), ManifestFile("b.csv", 90, 9))
    columns = {"id": "int64", "ids": "list<int64>"}
    small = Manifest("mixed", "csv", "none", 0, 1, 200, 19, 2, columns, files)
    return manifest.dumps(small), store.dumps(sample_profile()), store.dumps(sample_sweep())


def _check_json(data: bytes) -> None:
    if b"pipeprof.dataset" in data:
        manifest.loads(data)
    else:
        store.dumps(store.loads(data))


TARGETS = {
    target.name: target
    for target in (
        Target("csv", _csv, of_format("csv")),
        Target("csv-gzip", _csv_gzip, of_format("csv")),
        Target("csv-kernels", _csv, with_kernels("csv")),
        Target("parquet", _parquet, of_format("parquet")),
        Target("parquet-footer", _parquet_footer, of_format("parquet")),
        Target("parquet-kernels", _parquet, with_kernels("parquet")),
        Target("tfrecord", _tfrecord, of_format("tfrecord")),
        Target("tfrecord-packed", _tfrecord_packed, of_format("tfrecord")),
        Target("example", _example, of_format("tfrecord")),
        Target("example-kernels", _example, with_kernels("tfrecord")),
        Target("csv-replaced", _csv, replaced("csv")),
        Target("parquet-replaced", _parquet, replaced("parquet")),
        Target("tfrecord-replaced", _tfrecord, replaced("tfrecord")),
        Target("framing", _framing, _check_framing),
        Target("json", _json, _check_json),
    )
}
