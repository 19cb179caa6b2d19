"""Damaged Parquet files: a sentence that says what is wrong, no crash and no made-up data."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.errors import CorruptData
from pipeprof.formats.sparse_file import SparseFile
from tests.contracts.format_samples import encode, read
from tests.formats.test_parquet import PARQUET, TABLE


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "too short"),
        (b"PAR1", "too short"),
        (b"PAR1" + bytes(20), "does not end with PAR1"),
        (b"PAR1" + b"\xff\xff\xff\x7fPAR1", "more than the 12 bytes"),
        (b"PAR1" + bytes(20) + b"\x04\0\0\0PAR1", "footer is damaged"),
        (b"PARE" + bytes(20) + b"\x04\0\0\0PARE", "encrypted"),
    ],
)
def test_damage_is_told(data: bytes, says: str) -> None:
    with pytest.raises(CorruptData, match=says):
        read(PARQUET, data)


def test_a_damaged_page_names_its_row_group() -> None:
    data = bytearray(encode(PARQUET, TABLE, "none", batch_rows=500))
    at = pq.read_metadata(io.BytesIO(bytes(data))).row_group(1).column(3).data_page_offset
    data[at + 200] ^= 1
    with pytest.raises(CorruptData, match=r"row group 1 is damaged.*CRC"):
        read(PARQUET, bytes(data))


def test_a_footer_that_contradicts_its_own_schema_does_not_end_the_process() -> None:
    data = encode(PARQUET, pa.table({"ids": [[1], [2, 3]]}))
    at = data.index(b"\x02\x18\x03ids")
    damaged = bytearray(data)
    damaged[at] ^= 2  # optional becomes required
    with pytest.raises(CorruptData, match="footer is damaged"):
        read(PARQUET, bytes(damaged))


def test_a_sparse_file_never_makes_bytes_up() -> None:
    file = SparseFile(100, [(10, 5), (50, 3)], [b"abcde", b"xyz"])
    file.seek(11)
    assert bytes(file.read(3)) == b"bcd"
    assert file.tell() == 14
    for offset, length in ((0, 1), (9, 2), (12, 4), (15, 1), (48, 4), (99, 1)):
        file.seek(offset)
        with pytest.raises(CorruptData, match=f"at byte {offset}"):
            file.read(length)
    assert file.seek(-1, 2) == 99


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
