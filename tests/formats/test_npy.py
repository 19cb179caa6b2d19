"""NumPy's files: arrays of rows, structured arrays, archives, and what is not read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pipeprof
from pipeprof.errors import CorruptData, FormatError, SchemaMismatch, UsageError
from pipeprof.formats import WRITTEN, detect, get
from pipeprof.formats.base import ReadOptions
from pipeprof.loaders.tensors import Ragged
from tests.contracts.format_samples import Bytes, drive, plan, read

NPY = get("npy")


def npy(array: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, **options)
    return sink.getvalue()


def npz(compressed: bool = False, **arrays: Any) -> bytes:
    sink = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(sink, **arrays)
    return sink.getvalue()


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", ">i4", "<i8"])
def test_an_array_of_numbers(dtype: str) -> None:
    array = np.arange(5).astype(dtype)
    found = read(NPY, npy(array))
    assert found["array"].to_pylist() == array.tolist()
    assert found.schema.field("array").type == pa.from_numpy_dtype(
        np.dtype(dtype).newbyteorder("=")
    )


def test_what_is_behind_the_first_axis_is_a_list() -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    found = read(NPY, npy(array))
    assert found.schema.field("array").type == pa.list_(pa.float32(), 12)
    assert found["array"].to_pylist() == array.reshape(2, 12).tolist()


def test_text_times_and_fields() -> None:
    assert read(NPY, npy(np.array([b"ab", b"c"])))["array"].to_pylist() == [b"ab", b"c"]
    assert read(NPY, npy(np.array(["häß", ""])))["array"].to_pylist() == ["häß", ""]
    times = np.array(["1970-01-02", "1970-01-03"], "datetime64[D]")
    assert read(NPY, npy(times))["array"].to_pylist() == [1, 2]
    rows = np.array([(1, [0.5, 1]), (2, [2, 3])], [("id", "i4"), ("box", "f8", 2)])
    assert read(NPY, npy(rows)).to_pydict() == {"id": [1, 2], "box": [[0.5, 1], [2, 3]]}


def test_every_split_size_gives_each_row_once() -> None:
    data = npy(np.arange(100).reshape(50, 2))
    for split_bytes in (0, 1, 16, 100, 10_000):
        found = read(NPY, data, options=ReadOptions(split_bytes=split_bytes))
        assert found["array"].to_pylist() == np.arange(100).reshape(50, 2).tolist()


def test_only_the_rows_of_a_split_are_read() -> None:
    source = Bytes(npy(np.zeros((1000, 100))))
    made = plan(NPY, source, options=ReadOptions(split_bytes=8000))
    assert [split.rows for split in made.splits] == [10] * 100
    source.asked.clear()
    assert made.schema is not None
    list(
        drive(NPY.decode(len(source.data), made.splits[7], made.schema, ReadOptions()), source.read)
    )
    assert sorted(source.asked) == [(0, 128), (128 + 7 * 8000, 8000)]


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_of_one_length_are_columns(compressed: bool) -> None:
    data = npz(compressed, x=np.eye(3, dtype=np.float32), y=np.array([7, 8, 9]))
    found = read(NPY, data)
    assert found.to_pydict() == {"x": np.eye(3).tolist(), "y": [7, 8, 9]}
    assert read(NPY, data, ["y"]).to_pydict() == {"y": [7, 8, 9]}
    assert plan(NPY, Bytes(data)).splits[0].rows == 3


def test_arrays_of_other_lengths_are_one_sample(tmp_path: Path) -> None:
    for number, side in enumerate((4, 6)):
        volume = np.full((side, 2), number, np.uint8)
        (tmp_path / f"{number}.npz").write_bytes(npz(True, x=volume, y=np.array([number]), z=0.5))
    [batch] = pipeprof.open_dataset(str(tmp_path), batch_size=2)
    assert isinstance(batch["x"], Ragged)
    assert batch["x"][1].view(6, 2).tolist() == [[1, 1]] * 6
    assert batch["y"][1].tolist() == [1]
    assert batch["z"].tolist() == [0.5, 0.5]


def test_planning_an_archive_reads_its_headers_alone() -> None:
    source = Bytes(npz(x=np.zeros((1000, 1000)), y=np.zeros(1000)))
    plan(NPY, source)
    assert sum(length for _, length in source.asked) < 200_000 < len(source.data)


def test_pickled_objects_are_not_read() -> None:
    with pytest.raises(SchemaMismatch, match="pickled objects, which are not read"):
        read(NPY, npy(np.array([{}], object), allow_pickle=True))
    data = npz(id=np.arange(2), thing=np.array([{}, {}], object))
    made = plan(NPY, Bytes(data))
    assert [field.name for field in made.left_out] == ["thing"]
    assert read(NPY, data).to_pydict() == {"id": [0, 1]}


@pytest.mark.parametrize("shape", [(10**12, 0), (3, 0, 2)])
def test_rows_without_bytes_are_refused_however_many(shape: tuple[int, ...]) -> None:
    """Nothing but the header says how many there are."""
    data = npy(np.zeros((3, 0)))
    said = str(shape).encode()
    header = data[10:].replace(b"(3, 0)", said).replace(b" " * (len(said) - 6) + b"\n", b"\n")
    with pytest.raises(SchemaMismatch, match="have no bytes"):
        read(NPY, data[:10] + header)


def test_fortran_order_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"Fortran order.*np\.ascontiguousarray"):
        read(NPY, npy(np.asfortranarray(np.eye(3))))


def test_cut_short_or_damaged_at_every_byte() -> None:
    for data in (npy(np.arange(6)), npz(x=np.arange(3)), npz(True, x=np.arange(30))):
        whole = read(NPY, data)
        for kept in range(len(data)):
            with pytest.raises(FormatError):
                read(NPY, data[:kept])
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1 << position % 8
            try:
                found = read(NPY, bytes(damaged))
            except FormatError:
                continue
            assert found.num_rows <= whole.num_rows


def test_an_object_shorter_than_listed_is_an_error() -> None:
    data = npy(np.arange(6))
    made = plan(NPY, Bytes(data))
    assert made.schema is not None
    decoding = NPY.decode(len(data), made.splits[0], made.schema, ReadOptions())
    with pytest.raises(CorruptData, match="shorter than when it was listed"):
        list(drive(decoding, Bytes(data[:-9]).read))


def test_they_are_known_by_their_content() -> None:
    for data in (npy(np.arange(6)), npz(x=np.arange(3)), npz(True, x=np.arange(3))):
        assert detect("x.bin", data[:4096], data[-4096:]).name == "npy"
    with pytest.raises(FormatError, match="is a zip archive"):
        detect("x.zip", b"PK\x03\x04" + bytes(22) + b"\x05\0\0\0a.txt", b"")


def test_they_are_not_written() -> None:
    assert "npy" not in WRITTEN
    with pytest.raises(UsageError, match="read, but not written; choose another"):
        NPY.encoder(pa.schema([("x", pa.int64())]))
