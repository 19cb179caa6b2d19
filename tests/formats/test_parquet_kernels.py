"""Kernels of Parquet by themselves: snappy, places in a dictionary, lists."""

from __future__ import annotations

import io
from importlib.util import find_spec
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.formats import get
from pipeprof.formats.compiled import kernels
from pipeprof.formats.parquet_head import Head, head_of
from tests.contracts.format_contract import Bytes, batches, plan, read
from tests.formats.test_parquet_pages import OPTIONS, bits, by_kernels, footer_of, written
from tests.needs import missing

PARQUET = get("parquet")
SNAPPY = pa.Codec("snappy")


@pytest.fixture(scope="module", autouse=True)
def numba() -> None:
    if find_spec("numba") is None:
        missing("numba is not installed")


def packed_samples() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    skewed = rng.zipf(1.3, 20_000).clip(0, 50_000)
    return {
        "nothing": b"",
        "one byte": b"x",
        "noise": rng.bytes(100_000),  # literals whose length takes bytes of its own
        "zeros": bytes(100_000),  # copies of the byte before
        "three": b"abc" * 9999,
        "eight": bytes(range(8)) * 5000,
        "places": skewed.astype(np.uint16).tobytes(),
        "small numbers": rng.integers(0, 300, 9000).tobytes(),
        "words": " ".join(f"word {n % 97}" for n in skewed.tolist()).encode(),
        "far": (noise := rng.bytes(60_000)) + bytes(50) + noise,
    }


def unsnapped(packed: bytes, size: int) -> bytes | None:
    kernel = kernels("pipeprof.formats.parquet_snappy_kernel")
    assert kernel is not None
    out = np.full(size + kernel.SLACK + 8, 7, np.uint8)
    there = kernel.unsnapped(np.frombuffer(packed, np.uint8), 0, len(packed), out[:-8], size)
    assert (out[-8:] == 7).all(), "written beyond its room"
    return out[:size].tobytes() if there else None


@pytest.mark.parametrize("name", packed_samples())
def test_snappy_is_unpacked(name: str) -> None:
    data = packed_samples()[name]
    assert unsnapped(SNAPPY.compress(data, asbytes=True), len(data)) == data


def test_a_copy_from_four_bytes_of_distance_is_unpacked() -> None:
    """Writers cut their input into pieces of 64 KiB, and never look so far back."""
    new, copy = b"\x0cabcd", bytes([3 | 6 << 2, 4, 0, 0, 0])
    assert unsnapped(b"\x0b" + new + copy, 11) == b"abcdabcdabc"
    assert unsnapped(b"\x0b" + new + bytes([3 | 6 << 2, 5, 0, 0, 0]), 11) is None
    assert unsnapped(b"\x0b" + new + bytes([3 | 6 << 2, 0, 0, 0, 0]), 11) is None


def test_what_snappy_could_not_pack_is_found_as_it_is() -> None:
    kernel = kernels("pipeprof.formats.parquet_snappy_kernel")
    assert kernel is not None
    noise = np.random.default_rng(0).bytes(60_000)
    for size in (1, 60, 61, 256, 257, 60_000):
        packed = SNAPPY.compress(noise[:size], asbytes=True)
        data = np.frombuffer(packed, np.uint8)
        at = kernel.as_it_is(data, 0, len(data), size)
        assert packed[at : at + size] == noise[:size]
        for wrong in ((0, len(data), size + 1), (0, len(data) - 1, size), (0, 1, size)):
            assert kernel.as_it_is(data, *wrong) == -1
    for packable in (bytes(1000), noise + noise[:9000]):
        data = np.frombuffer(SNAPPY.compress(packable, asbytes=True), np.uint8)
        assert kernel.as_it_is(data, 0, len(data), len(packable)) == -1


def test_snappy_that_is_damaged_is_refused_where_arrow_refuses_it() -> None:
    rng, refused = Random(0), 0
    samples = [data[:3000] for data in packed_samples().values() if data]
    for _ in range(5000):
        data = rng.choice(samples)
        packed = bytearray(SNAPPY.compress(data, asbytes=True))
        head = 1 if len(data) < 128 else 2  # its length, which the caller has compared
        for _ in range(rng.randint(1, 3)):
            packed[rng.randrange(head, len(packed))] = rng.randrange(256)
        cut = rng.choice((len(packed), rng.randint(head, len(packed))))
        try:
            expected = SNAPPY.decompress(bytes(packed[:cut]), len(data), asbytes=True)
        except OSError:
            expected, refused = None, refused + 1
        assert unsnapped(bytes(packed[:cut]), len(data)) == expected
    assert 1000 < refused < 4900


def pylist(data: bytes, name: str) -> list[Any]:
    found = by_kernels(data, name)
    assert found is not None
    return list(found.to_pylist())


def lists(rows: int, least: int, value: pa.DataType, nullable: bool) -> pa.Table:
    rng = np.random.default_rng(rows)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(least, 90, rows))]).astype(np.int32)
    few = rng.integers(0, 1 + rows // 3, int(offsets[-1]))
    field = pa.field("element", value, nullable)
    array = pa.ListArray.from_arrays(offsets, pa.array(few).cast(value), pa.list_(field))
    return pa.table(
        {"ids": array, "n": np.arange(rows)},
        pa.schema([pa.field("ids", pa.list_(field), nullable), pa.field("n", pa.int64())]),
    )


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("value", [pa.int64(), pa.float32(), pa.uint8()], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_lists_are_as_arrow_reads_them(
    options: dict[str, Any], value: pa.DataType, nullable: bool
) -> None:
    data = written(lists(333, 1, value, nullable), **options)
    file = pq.ParquetFile(io.BytesIO(data))
    for group in {0, file.num_row_groups - 1}:
        found = by_kernels(data, "ids", group)
        assert found is not None
        found.validate(full=True)
        assert bits(found) == bits(file.read_row_group(group)["ids"].combine_chunks())


def test_long_and_short_lists_and_rows_that_are_no_lists() -> None:
    rows = [[7] * 3000, [1], [2], *([n, n] for n in range(500)), [3] * 9]
    data = written(pa.table({"ids": rows}), data_page_size=600, write_batch_size=50)
    assert pylist(data, "ids") == rows
    for odd in ([], None, [4, None]):
        data = written(pa.table({"ids": [*rows, odd]}))
        assert by_kernels(data, "ids") is None
        assert read(PARQUET, data)["ids"].to_pylist() == [*rows, odd]


def test_a_place_beyond_the_dictionary_is_left_to_arrow() -> None:
    """Three values have places of two bits, which can be four."""
    data = bytearray(written(pa.table({"n": np.arange(64) % 3}), compression="none"))
    chunk = footer_of(bytes(data)).chunk(0, "n")
    assert chunk is not None
    last = chunk.start + chunk.length - 1
    assert pylist(bytes(data), "n")[-4:] == [0, 1, 2, 0]
    data[last] |= 0b11
    assert by_kernels(bytes(data), "n") is None


def test_planning_loads_the_kernels_that_decoding_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each forked worker would, and on a new machine compile them."""
    taken: set[str] = set()

    def noted(module: str) -> Any:
        taken.add(module)
        return kernels(module)

    for name in ("parquet_columns", "parquet_pages", "parquet_chunks"):
        monkeypatch.setattr(f"pipeprof.formats.{name}.kernels", noted)
    for column in (["a", "b"], [1, 2], [[1], [2]]):
        taken.clear()
        source = Bytes(written(pa.table({"n": column})))
        made = plan(PARQUET, source)
        planned = set(taken)
        [*_] = batches(PARQUET, source, made)
        assert planned == taken
        assert len(planned) >= 4


def test_files_of_the_same_columns_share_what_arrow_reads_of_them() -> None:
    head_of.cache_clear()
    found: set[Head] = set()
    for rows in (10, 2000, 3):
        table = pa.table({"a": np.arange(rows), "b": ["x"] * rows})
        data = written(table, row_group_size=500)
        found.add(footer_of(data).head)
        assert read(PARQUET, data).equals(table)
    assert len(found) == 1
    assert footer_of(written(pa.table({"a": [1.5]}))).head not in found
