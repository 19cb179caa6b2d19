"""Decode by DuckDB, with one thread."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import Reader, plain_bytes
from pipeprof.formats.text_cells import NULLS

_FILE = "/pipeprof-object"
_TYPES = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER",
    "int64": "BIGINT", "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER",
    "uint64": "UBIGINT", "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR",
}  # fmt: skip


class DuckDB:
    """The reader; see the module."""

    name = module = "duckdb"
    fork_safe = False

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        import duckdb
        from fsspec.implementations.memory import MemoryFileSystem

        memory = MemoryFileSystem()
        memory.pipe_file(_FILE, bytes(plain_bytes(data)))
        connection: Any = duckdb.connect(config={"threads": 1})
        try:
            connection.register_filesystem(memory)
            columns = ", ".join(map(_quoted, schema.names))
            query = f"SELECT {columns} FROM {_source(format_name, schema)}"
            table: pa.Table = connection.sql(query).arrow().read_all()
            return table
        finally:
            connection.close()
            memory.rm_file(_FILE)


def _source(format_name: str, schema: pa.Schema) -> str:
    url = f"'memory://{_FILE}'"
    if format_name == "parquet":
        return f"read_parquet({url})"
    types = ", ".join(f"{_text(field.name)}: {_text(_type(field.type))}" for field in schema)
    if format_name == "jsonl":
        return f"read_json({url}, format='newline_delimited', columns={{{types}}})"
    nulls = ", ".join(map(_text, NULLS))
    return f"read_csv({url}, header=true, types={{{types}}}, nullstr=[{nulls}])"


def _type(dtype: pa.DataType) -> str:
    if pa.types.is_list(dtype):
        return f"{_type(dtype.value_type)}[]"
    return _TYPES[str(dtype)]


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _text(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


READER: Reader = DuckDB()
