"""Readers: each gives the rows that the format's own decoder gives."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pipeprof.errors import CorruptData, SchemaMismatch, UsageError
from pipeprof.formats import get as get_format
from pipeprof.formats import readers
from pipeprof.formats.base import Decoder, ReadOptions, drive_plan
from tests.contracts.format_samples import (
    EVERY_TYPE,
    INFERRED,
    SMALL,
    Bytes,
    drive,
    encode,
    meaning,
    types_of,
)

PAIRS = [
    (reader, name)
    for reader, known in readers.READERS.items()
    for name in known
    if name != "images"  # see test_image_readers
]
BEYOND = {
    ("polars", "jsonl"): {"float16", "float32", "tiny", "floats"},  # NaN and Infinity are no JSON
    ("pandas", "jsonl"): {"int64", "uint64"},  # rounded beyond 2⁵³, in a column with a null
    ("tfrecord", "tfrecord"): {"blobs"},  # zero bytes at their end are lost
}
"""Columns of `EVERY_TYPE` that a reader refuses, or reads otherwise than `own`."""

may_leave_a_file = pytest.mark.filterwarnings(
    # the package tfrecord leaves a file to the collector when it raises
    "ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    if readers.installed_version(found[0]) is None:
        pytest.skip(f"{found[0]} is not installed")
    return found


def rows(decoder: Decoder, data: bytes, types: dict[str, pa.DataType] | None = None) -> pa.Table:
    source = Bytes(data)
    plan = drive_plan(decoder.plan(len(data), None, types or {}, ReadOptions()), source.read)
    assert plan.schema is not None
    batches = [
        batch
        for split in plan.splits
        for batch in drive(
            decoder.decode(len(data), split, plan.schema, ReadOptions()), source.read
        )
    ]
    return pa.Table.from_batches(batches, plan.schema)


def read(
    pair: tuple[str, str], table: pa.Table, compression: str | None = None
) -> Iterator[pa.Table]:
    """Yield the rows by the format's own decoder, and by the reader."""
    reader, name = pair
    data = encode(get_format(name), table, compression)
    for decoder in (get_format(name), readers.read_by(reader, get_format(name))):
        yield rows(decoder, data, types_of(table.schema))


def test_columns_that_all_formats_infer(pair: tuple[str, str]) -> None:
    table = INFERRED.slice(0, 3) if pair == ("pandas", "jsonl") else INFERRED
    data = encode(get_format(pair[1]), table)
    own = rows(get_format(pair[1]), data)
    other = rows(readers.read_by(pair[0], get_format(pair[1])), data)
    assert other.schema.equals(own.schema)
    assert meaning(other) == meaning(own)


def test_every_type(pair: tuple[str, str]) -> None:
    names = [name for name in EVERY_TYPE.column_names if name not in BEYOND.get(pair, ())]
    own, other = read(pair, EVERY_TYPE.select(names))
    assert other.schema.equals(own.schema)
    assert meaning(other) == meaning(own)


@may_leave_a_file
def test_every_compression(pair: tuple[str, str]) -> None:
    for compression in get_format(pair[1]).compressions:
        own, other = read(pair, SMALL, compression)
        assert other.equals(own), compression


def test_columns_in_the_order_asked_for(pair: tuple[str, str]) -> None:
    reader, name = pair
    data = encode(get_format(name), SMALL)
    decoder, source = readers.read_by(reader, get_format(name)), Bytes(data)
    plan = drive_plan(decoder.plan(len(data), ["ids", "id"], {}, ReadOptions()), source.read)
    [split] = plan.splits
    assert plan.schema is not None
    [batch] = drive(decoder.decode(len(data), split, plan.schema, ReadOptions()), source.read)
    assert pa.table(batch).equals(SMALL.select(["ids", "id"]))


@may_leave_a_file
def test_damage_is_an_error_that_names_the_reader(pair: tuple[str, str]) -> None:
    reader, name = pair
    data = encode(get_format(name), SMALL)
    decoder = readers.read_by(reader, get_format(name))
    plan = drive_plan(decoder.plan(len(data), None, {}, ReadOptions()), Bytes(data).read)
    assert plan.schema is not None
    broken = b"\xff{" * (len(data) // 2) + data[: len(data) % 2]
    decoding = decoder.decode(len(data), plan.splits[0], plan.schema, ReadOptions())
    with pytest.raises((CorruptData, SchemaMismatch), match=f"{reader} cannot read it|column"):
        list(drive(decoding, Bytes(broken).read))


def test_a_reader_that_is_unknown_or_does_not_know_the_format() -> None:
    with pytest.raises(UsageError, match="'pollars' is not a reader; choose one of own, polars"):
        readers.get("pollars")
    with pytest.raises(UsageError, match="the reader python does not know parquet; own, polars"):
        readers.read_by("python", get_format("parquet"))


def test_a_reader_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "installed_version", lambda name: None)
    readers.get.cache_clear()
    with pytest.raises(UsageError, match=r"not installed; pip install polars, or pipeprof.polars."):
        readers.get("polars")
    with pytest.raises(UsageError, match=r"pip install tensorflow, or pipeprof.tensorflow."):
        readers.get("tf.data")


def test_a_url_names_its_reader() -> None:
    assert readers.split_reader("polars::s3://b/x") == ("polars", "s3://b/x")
    assert readers.split_reader("own::/data") == (None, "/data")
    assert readers.split_reader("/data/a::b") == (None, "/data/a::b")
    assert readers.split_reader("filecache::s3://b/x") == (None, "filecache::s3://b/x")
    assert list(readers.each_reader("/d", ["own", "python"])) == ["/d", "python::/d"]


def test_listing_readers_imports_none_of_them() -> None:
    code = (
        "import sys; from pipeprof.formats.readers import list_readers; list_readers();"
        "sys.exit(bool({'polars', 'pandas', 'duckdb'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_python_reads_gzip_too() -> None:
    data = gzip.compress(b"a,b\n1,x\n")
    decoder = readers.read_by("python", get_format("csv"))
    assert rows(decoder, data).to_pydict() == {"a": [1], "b": ["x"]}


def test_datasets_asks_no_server_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = (
        "import socket, pyarrow; from pipeprof.formats.readers import get;"
        "asked = []; socket.getaddrinfo = lambda *name, **options: asked.append(name);"
        "schema = pyarrow.schema([('a', pyarrow.int64())]);"
        "assert get('datasets').read('csv', b'a\\n1\\n', schema).num_rows == 1;"
        "assert not asked, asked"  # an error alone would be caught in the library
    )
    for name in ("HOME", "HF_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
