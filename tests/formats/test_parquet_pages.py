"""Parquet by kernels: whatever they read, Arrow reads the same, bit for bit; and what they do not
read, Arrow reads or refuses as if they were not there."""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipeprof.errors import CorruptData, FormatError
from pipeprof.formats import get
from pipeprof.formats.base import Fault, ReadOptions, drive, drive_plan
from pipeprof.formats.compiled import SWITCH, kernels
from pipeprof.formats.parquet_chunks import table_of
from pipeprof.formats.parquet_columns import decoded
from pipeprof.formats.parquet_footer import Footer, parsed
from tests.contracts.format_contract import Bytes, encode, plan, read
from tests.fuzz.targets import TARGETS
from tests.needs import missing

PARQUET = get("parquet")
CORPUS = Path(__file__).parent / "corpus" / "parquet"
ROWS = 3000
UNUSUAL = {
    *("case-001.parquet", "case-040.parquet", "case-083.parquet", "geospatial-with-nan.parquet"),
    *("column_chunk_key_value_metadata.parquet", "dict-page-offset-zero.parquet"),
    *("sort_columns.parquet", "unknown-logical-type.parquet"),
}
"""Files of the corpus with more in their footer than a kernel takes for plain."""


@pytest.fixture(scope="module", autouse=True)
def numba() -> None:
    if find_spec("numba") is None:
        missing("numba is not installed")


def table(seed: int, rows: int = ROWS) -> pa.Table:
    """Every type that is read by kernels; few distinct values and many, long runs and none."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        kind = np.iinfo(name)
        wide = rng.integers(kind.min, kind.max, rows, name, endpoint=True)
        columns[name] = pa.array(wide)
        columns[f"few_{name}"] = pa.array(rng.choice(wide[: rng.integers(1, 40)], rows))
    for bits in (32, 64):
        # every pattern is one: NaN of any payload, -0.0, the smallest
        some = rng.integers(0, 2**bits - 1, rows, f"u{bits // 8}", endpoint=True)
        columns[f"float{bits}"] = pa.array(some.view(f"f{bits // 8}"))
        steps = np.repeat(rng.normal(size=rows), rng.integers(1, 200, rows))[:rows]
        columns[f"steps{bits}"] = pa.array(steps.astype(f"f{bits // 8}"))
    words = [rng.bytes(int(rng.integers(0, 70))) for _ in range(rows)]
    columns["binary"] = pa.array(words, pa.binary())
    columns["few_binary"] = pa.array([words[i] for i in rng.integers(0, 9, rows)], pa.binary())
    columns["string"] = pa.array([f"wörd {i % 777}" * (i % 5) for i in range(rows)])
    return pa.table(columns)


def with_nulls(rows: pa.Table, seed: int) -> pa.Table:
    """One by one and in runs, few and many: from none of the first column to all of the last."""
    rng, columns = np.random.default_rng(seed), list[pa.Array]()
    for n, column in enumerate(rows.columns):
        lengths = rng.integers(1, (2, 9, 400)[n % 3], len(column))
        runs = np.repeat(rng.random(len(column)) < n / (rows.num_columns - 1), lengths)
        columns.append(pc.if_else(pa.array(runs[: len(column)]), None, column))
    return pa.table(columns, rows.column_names)


def written(rows: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def footer_of(data: bytes) -> Footer:
    length = int.from_bytes(data[-8:-4], "little") + 8
    return parsed(data[-length:], len(data) - length)


def by_kernels(data: bytes, name: str, group: int = 0) -> pa.Array | None:
    chunk = footer_of(data).chunk(group, name)
    if chunk is None:
        return None
    [found] = decoded([chunk], [pa.py_buffer(data).slice(chunk.start, chunk.length)])
    return found


def bits(array: pa.Array) -> tuple[Any, ...]:
    """All that an array is: of a float its bits."""
    if pa.types.is_floating(array.type):
        array = array.view(f"uint{array.type.bit_width}")
    return array.type, array.null_count, array.to_pylist()


OPTIONS: list[dict[str, Any]] = [
    {},
    {"data_page_size": 700, "compression": "none"},
    {"data_page_size": 700, "data_page_version": "2.0", "compression": "zstd"},
    {"use_dictionary": False, "write_page_checksum": True},
    {"use_dictionary": False, "data_page_version": "2.0", "compression": "none"},
    {"dictionary_pagesize_limit": 900, "data_page_size": 500, "write_batch_size": 64},
    {"dictionary_pagesize_limit": 900, "write_batch_size": 100, "data_page_version": "2.0"},
    {"row_group_size": 7, "compression": "zstd"},
    {"row_group_size": 1111, "write_page_checksum": True, "compression": "zstd"},
    {"version": "1.0", "store_schema": False, "write_page_index": True},
]


@pytest.mark.parametrize("nulls", ["some", "none", "never"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_column_is_as_arrow_reads_it(options: dict[str, Any], nulls: str) -> None:
    rows = table(seed=len(str(options)))
    if nulls == "some":
        rows = with_nulls(rows, seed=len(str(options)))
    if nulls == "never":
        rows = rows.cast(pa.schema([field.with_nullable(False) for field in rows.schema]))
    if "row_group_size" in options:
        rows = rows.slice(0, 20 * options["row_group_size"])
    data = written(rows, **options)
    file = pq.ParquetFile(io.BytesIO(data))
    for group in {0, file.num_row_groups - 1}:
        expected = file.read_row_group(group)
        for name in rows.column_names:
            found = by_kernels(data, name, group)
            if found is None:
                # as integers of 32 bits were before they had a name
                assert (name, options.get("version")) in {("uint32", "1.0"), ("few_uint32", "1.0")}
                continue
            found.validate(full=True)
            assert bits(found) == bits(expected[name].combine_chunks()), name


@pytest.mark.parametrize("distinct", [1, 2, 3, 17, 256, 257, 40_000, 66_000, 140_000])
def test_indices_of_every_width(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    values = rng.permutation(np.concatenate([np.arange(distinct), rng.integers(0, distinct, 999)]))
    rows = pa.table({"n": values.astype(np.int32), "x": values / 7})
    data = written(rows, dictionary_pagesize_limit=2**22, data_page_size=2**16)
    for name in rows.column_names:
        assert bits(by_kernels(data, name)) == bits(rows[name].combine_chunks())


def test_what_is_not_plain_is_left_to_arrow() -> None:
    rows = pa.table(
        {
            "flag": pa.array([True, False, True] * 50),
            "ids": pa.array([[1], [], [2, 3]] * 50),
            "nulls": pa.array([[1], [None], [2, 3]] * 50),
            "day": pa.array([1, 2, 3] * 50, pa.date32()),
            "category": pa.array(["a", "b", "a"] * 50).dictionary_encode(),
            "delta": pa.array(range(150)),
            "plain": pa.array(range(150)),
        }
    )
    data = written(rows, use_dictionary=["flag"], column_encoding={"delta": "DELTA_BINARY_PACKED"})
    assert [name for name in rows.column_names if by_kernels(data, name) is not None] == ["plain"]
    for compression in ("gzip", "lz4", "brotli"):
        assert by_kernels(written(rows, compression=compression), "plain") is None
    assert by_kernels(written(rows.slice(0, 0)), "plain") is None


def test_one_batch_has_columns_of_both() -> None:
    rows = pa.table({"a": [1, 2, 3], "b": [True, None, False], "c": ["x", None, "z"]})
    [batch] = outcome(written(rows))
    assert batch == [_bytes(column.combine_chunks()) for column in rows.columns]


def test_a_damaged_checksum_is_told_as_arrow_tells_it() -> None:
    rows = pa.table({"a": np.arange(100) % 7, "b": np.arange(100)})
    data = bytearray(written(rows, write_page_checksum=True, compression="none"))
    chunk = footer_of(bytes(data)).chunk(0, "b")
    assert chunk is not None
    data[chunk.start + chunk.length - 1] ^= 1
    assert by_kernels(bytes(data), "a") is not None
    assert by_kernels(bytes(data), "b") is None
    [(error, says, rows_lost)] = outcome(bytes(data))
    assert (error, rows_lost) == (CorruptData, 100)
    assert "row group 0 is damaged" in says
    assert "CRC" in says


def test_the_size_of_a_page_is_never_negative() -> None:
    """Memory for words is the sum of sizes that headers speak of."""
    kernel = kernels("pipeprof.formats.parquet_page_kernels")
    assert kernel is not None
    table = np.empty((2, kernel.FIELDS), np.int64)

    def pages(unpacked: int, packed: int) -> int:
        sizes = bytes([0x15, unpacked, 0x15, packed])  # as zigzag varints
        header = b"\x15\0" + sizes + b"\x2c\x15\x02\x15\0\x15\x06\x15\x06\0\0"
        found: int = kernel.pages_of(np.frombuffer(header, np.uint8), kernel.NONE, table)
        return found

    assert pages(0, 0) == 1
    assert pages(1, 0) == pages(2, 0) == pages(0, 1) == pages(0, 2) == -1


@pytest.mark.parametrize("path", sorted((CORPUS / "good").iterdir()), ids=lambda path: path.name)
def test_a_footer_says_what_arrow_reads_in_it(path: Path) -> None:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little") + 8
    found = table_of(data[-length:], len(data) - length)
    metadata = pq.read_metadata(io.BytesIO(data))
    if found is None:
        assert path.name in UNUSUAL or not metadata.num_row_groups
        return
    assert found.rows == [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
    for group, _ in enumerate(found.rows):
        for leaf, kind in enumerate(found.types):
            column = metadata.row_group(group).column(leaf)
            first = column.data_page_offset
            if column.has_dictionary_page and column.dictionary_page_offset:
                first = column.dictionary_page_offset
            if kind >= 0:
                assert found.starts[group][leaf] == first
                assert found.lengths[group][leaf] == column.total_compressed_size


def outcome(data: bytes, options: ReadOptions | None = None) -> list[Any]:
    """What comes of reading it: each batch and each error."""
    found: list[Any] = []
    options = options or ReadOptions()

    def leave_out(fault: Fault) -> None:
        found.append((type(fault.error), str(fault.error), fault.rows))

    source = Bytes(data)
    try:
        made = drive_plan(PARQUET.plan(len(data), None, {}, options), source.read, leave_out)
        assert made.schema is not None
        for split in made.splits:
            decoding = PARQUET.decode(len(data), split, made.schema, options)
            for batch in drive(decoding, source.read, leave_out):
                batch.validate()
                found.append([_bytes(column) for column in batch.columns])
    except FormatError as error:
        found.append((type(error), str(error)))
    return found


def _bytes(array: pa.Array) -> tuple[Any, ...]:
    if pa.types.is_string(array.type):  # of a damaged file, it may be none
        array = array.view(pa.binary())
    return (repr(array.to_pylist()),) if array.type.num_fields else bits(array)


def damaged(target: str, count: int) -> Iterator[bytes]:
    rng = Random(f"{target} pages")
    for _ in range(count):
        yield TARGETS[target].make(rng)


@pytest.mark.parametrize("target", ["parquet", "parquet-footer"])
def test_damage_is_told_or_read_as_without_kernels(target: str) -> None:
    for number, data in enumerate(damaged(target, count=800)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(SWITCH, "0")
            expected = outcome(data)
        assert outcome(data) == expected, number


def test_more_rows_than_values_take_no_memory() -> None:
    """Arrow would ask for memory for all the rows that a footer speaks of."""
    for column in ([None, 1], [[1], [2, 3]]):
        data = encode(PARQUET, pa.table({"a": pa.array(column)}))
        at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        rows = data.rindex(b"\x16\x04", at, data.index(b"parquet-cpp", at))
        many = b"\x16\x80\x80\x80\x80\x80\x10"
        footer = data[at:rows] + many + data[rows + 2 : -8]
        length = len(footer).to_bytes(4, "little")
        with pytest.raises(CorruptData, match=r"row group 0 has 274877906944 rows.* values"):
            read(PARQUET, data[:at] + footer + length + b"PAR1")


def test_a_footer_is_parsed_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"a": np.arange(100), "b": [[1]] * 100})
    source = Bytes(written(rows, row_group_size=10))
    made = plan(PARQUET, source, options=ReadOptions(split_bytes=1))
    assert len(made.splits) == 10
    monkeypatch.setattr("pipeprof.formats.parquet_footer.Footer", None)
    assert made.schema is not None
    for split in made.splits:
        [batch] = drive(
            PARQUET.decode(len(source.data), split, made.schema, ReadOptions()), source.read
        )
        assert batch.num_rows == 10
