"""Decode the row groups of a split with pyarrow, from the byte ranges that were fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeprof.errors import FormatError
from pipeprof.formats.arrow_errors import reading
from pipeprof.formats.base import Fault
from pipeprof.formats.parquet.footer import Footer
from pipeprof.formats.sparse_file import SparseFile
from pipeprof.formats.types import convert, is_list, one_array, plain_type


def decode_row_groups(
    file: SparseFile, footer: Footer, groups: Sequence[int], schema: pa.Schema
) -> Iterator[pa.RecordBatch | Fault]:
    """Yield one record batch per row group, or the fault that damages it."""
    reader: pq.ParquetReader | None = None
    for group in groups:
        if not footer.rows[group]:
            continue
        reader = reader or _open(file, footer)
        try:
            yield _decode(reader, footer, group, schema)
        except FormatError as error:
            reader = None
            yield Fault(error, footer.rows[group])


def _open(file: SparseFile, footer: Footer) -> pq.ParquetReader:
    reader = pq.ParquetReader()  # `ParquetFile` would look at each column of the file in Python
    reader.open(
        pa.PythonFile(file, mode="r"),
        metadata=footer.metadata,
        pre_buffer=False,
        page_checksum_verification=True,
    )
    return reader


def _decode(
    reader: pq.ParquetReader, footer: Footer, group: int, schema: pa.Schema
) -> pa.RecordBatch:
    """Return the columns of a row group. Raises `CorruptData`, `SchemaMismatch`."""
    with reading(f"row group {group}"):
        leaves = footer.leaves_of(schema.names)
        table = reader.read_row_group(group, column_indices=leaves, use_threads=False)
        arrays = {name: one_array(table.column(name)) for name in schema.names}
        stored = footer.metadata.row_group(group)
        for name, array in arrays.items():
            _check_count(array, stored, footer.leaves[name])
    columns = [convert(field.name, arrays[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_count(array: pa.Array, stored: pq.RowGroupMetaData, leaves: Sequence[int]) -> None:
    """Raise `ValueError` unless ``array`` has as many rows and values as the footer counts.

    The header of a page has no checksum, and says how many values to take from the page. Of nested
    columns only the rows are compared.
    """
    if plain_type(array.type) is None:
        if len(array) != stored.num_rows:
            raise ValueError(f"{len(array)} rows where the footer counts {stored.num_rows}")
        return
    values = len(array)
    if is_list(array.type) or pa.types.is_large_list(array.type):
        lengths = pc.list_value_length(array).fill_null(1)
        values = pc.sum(pc.max_element_wise(lengths, 1)).as_py() or 0
    counted = {stored.column(leaf).num_values for leaf in leaves}
    if len(array) != stored.num_rows or values not in counted:
        raise ValueError(f"{values} values where the footer counts others")
