"""Parquet files that other software wrote, valid and damaged: see corpus/README.md."""

from __future__ import annotations

import io
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats import get
from pipeprof.formats.types import convert, plain_type
from tests.contracts.format_samples import read

CORPUS = Path(__file__).parent / "corpus" / "parquet"
PARQUET = get("parquet")
GOOD = sorted((CORPUS / "good").iterdir())
BAD = {
    "ARROW-GH-41317.parquet": "row group 0 is damaged (Column 17 named timestamp_us_no_tz expected",
    "ARROW-GH-41321.parquet": "row group 0 is damaged (Invalid or corrupted bit_width 254",
    "ARROW-GH-45185.parquet": "row group 0 is damaged (The repetition level at the start",
    "ARROW-GH-47662.parquet": "row group 0 is damaged (Unexpected end of stream",
    "ARROW-RS-GH-6229-DICTHEADER.parquet": "the footer is damaged (Invalid column metadata",
    "ARROW-RS-GH-6229-LEVELS.parquet": "column 'outer' is list<struct<c: null>>, which has no",
    "PARQUET-1481.parquet": "the footer is damaged (Invalid physical column type: UNKNOWN",
    "datapage_v1-corrupt-checksum.parquet": "row group 0 is damaged (could not verify page integri",
    "encrypt_columns_and_footer.parquet.encrypted": "its footer is encrypted, which is not read",
    "encrypt_columns_plaintext_footer.parquet.encrypted": "columns are encrypted, which is not",
    "external_key_material_java.parquet.encrypted": "its footer is encrypted, which is not read",
    "incorrect_map_schema.parquet": "the footer is damaged (Map keys must be annotated as requir",
    "rle-dict-uncompressed-corrupt-checksum.parquet": "CRC checksum verification failed",
    "uniform_encryption.parquet.encrypted": "its footer is encrypted, which is not read",
}
WITHOUT_TENSOR = {"ARROW-RS-GH-6229-LEVELS.parquet": ["outer"]}
"""Its only column, which is left out unless it is asked for."""
READ_ALL_THE_SAME = "ARROW-GH-43605.parquet"
"""Bit width 0 where the values need none: Arrow has learnt to read it."""


def columns_with_tensors(data: bytes) -> list[str]:
    schema = pq.read_schema(io.BytesIO(data))
    return [field.name for field in schema if plain_type(field.type) is not None]


def as_arrow_reads(data: bytes, columns: list[str]) -> pa.Table:
    """Arrow's own reading, in our plain types."""
    table = pq.read_table(io.BytesIO(data), columns=columns)
    arrays = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = column.combine_chunks()
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        arrays.append(convert(name, storage, plain_type(storage.type)))
    return pa.table(arrays, columns)


@pytest.mark.parametrize(
    "path", [*GOOD, CORPUS / "bad" / READ_ALL_THE_SAME], ids=lambda path: path.name
)
def test_a_valid_file_is_read_as_arrow_reads_it(path: Path) -> None:
    data = path.read_bytes()
    columns = columns_with_tensors(data)
    others = [name for name in pq.read_schema(io.BytesIO(data)).names if name not in columns]
    if columns:
        found, expected = read(PARQUET, data, columns), as_arrow_reads(data, columns)
        assert found.schema.equals(expected.schema)
        assert repr(found.to_pydict()) == repr(expected.to_pydict())  # NaN too
    for name in others:
        with pytest.raises(SchemaMismatch, match=f"'{name}' is .*, which has no tensor"):
            read(PARQUET, data, [name])


def refusal(data: bytes, columns: list[str] | None) -> str:
    with pytest.raises(FormatError) as raised:
        read(PARQUET, data, columns)
    return str(raised.value)


@pytest.mark.parametrize(("name", "says"), BAD.items())
def test_a_bad_file_is_refused_with_what_is_wrong(name: str, says: str) -> None:
    data = (CORPUS / "bad" / name).read_bytes()
    told = refusal(data, WITHOUT_TENSOR.get(name))
    assert says in told
    assert "\n" not in told


def test_every_bad_file_is_tried() -> None:
    assert {path.name for path in (CORPUS / "bad").iterdir()} == {*BAD, READ_ALL_THE_SAME}


def test_columns_that_are_not_encrypted_are_read_beside_those_that_are() -> None:
    data = (CORPUS / "bad" / "encrypt_columns_plaintext_footer.parquet.encrypted").read_bytes()
    assert read(PARQUET, data, ["boolean_field", "int32_field"]).num_rows == 50
    with pytest.raises(CorruptData, match="columns are encrypted"):
        read(PARQUET, data, ["boolean_field", "double_field"])


def test_four_kilobytes_that_hold_two_gigabytes_are_refused_without_being_unpacked() -> None:
    data = (CORPUS / "good" / "large_string_map.brotli.parquet").read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SchemaMismatch, match="has no tensor"):
        read(PARQUET, data, pq.read_schema(io.BytesIO(data)).names)
    assert not read(PARQUET, data).schema
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
