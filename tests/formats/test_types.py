"""Names of types, and choosing columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.errors import SchemaMismatch, UsageError
from pipeprof.formats.types import SCALARS, convert, format_type, parse_type, plain_type, select


@given(st.sampled_from(list(SCALARS)), st.none() | st.integers(1, 10**6))
def test_names_of_types_read_back(scalar: str, size: int | None) -> None:
    for name in (scalar, f"list<{scalar}>", f"list<{scalar}>[{size or 1}]"):
        assert format_type(parse_type(name)) == name
        assert plain_type(parse_type(name)) == parse_type(name)


def test_what_a_name_means() -> None:
    assert parse_type(" float32 ") == pa.float32()
    assert parse_type("list< int64 >") == pa.list_(pa.int64())
    assert parse_type("list<uint8>[784]") == pa.list_(pa.uint8(), 784)


@pytest.mark.parametrize(
    "text", ["", "int", "list", "list<>", "list<int64>[0]", "list<int64>[-1]", "list<list<int8>>"]
)
def test_a_name_that_is_no_type_lists_those_that_are(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a column type.*float32.*list<T>\[k\]"):
        parse_type(text)


def test_a_type_outside_the_table_has_the_name_arrow_gives_it() -> None:
    assert format_type(pa.list_(pa.date32())) == "list<date32[day]>"
    assert plain_type(pa.struct([("x", pa.int8())])) is None
    assert plain_type(pa.list_(pa.list_(pa.int8()))) is None
    assert plain_type(pa.null()) is None
    assert plain_type(pa.string_view()) == pa.string()
    assert plain_type(pa.dictionary(pa.int8(), pa.large_binary())) == pa.binary()


def test_an_unknown_column_among_many_lists_the_first() -> None:
    with pytest.raises(SchemaMismatch, match=r"no column 'zz'\. There are c0, c1.*and 30 more"):
        select([f"c{i}" for i in range(50)], ["zz"])


def test_conversion_is_exact_or_refused() -> None:
    assert convert("x", pa.array([1, None]), pa.int8()).to_pylist() == [1, None]
    with pytest.raises(SchemaMismatch, match="column 'x' is int64 and cannot be read as int8"):
        convert("x", pa.array([1000]), pa.int8())
    with pytest.raises(SchemaMismatch, match=r"list<int64>\[2\]"):
        convert("x", pa.array([[1], [1, 2]]), pa.list_(pa.int64(), 2))
