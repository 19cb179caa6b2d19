"""CSV: the contract, and what is CSV's own."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pyarrow as pa
import pytest

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats import get
from pipeprof.formats.base import FilePlan, ReadOptions, Split
from pipeprof.formats.csv.rows import RowBuffer
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import Bytes, batches, drive, encode, plan, read

CSV = get("csv")


class TestCsv(FormatContract):
    name = "csv"

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        """A prefix of the rows; the last may be cut, which CSV cannot tell from short."""
        sure = max(part.num_rows - 1, 0)
        return part.num_rows <= whole.num_rows and part.slice(0, sure).equals(whole.slice(0, sure))

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        return False  # text has no checksum


def columns(data: bytes, **options: int) -> dict[str, list[object]]:
    return read(CSV, data, options=ReadOptions(**options)).to_pydict()


def test_line_ends_bom_blank_lines_and_no_final_newline() -> None:
    expected = {"a": [1, 2], "b": ["x", "y"]}
    assert columns(b"a,b\n1,x\n2,y\n") == expected
    assert columns(b"a,b\r\n1,x\r\n2,y\r\n") == expected
    assert columns(b"a,b\n1,x\n2,y") == expected
    assert columns(b"\xef\xbb\xbfa,b\n1,x\n\n2,y\n\n\n") == expected
    assert columns(b'\xef\xbb\xbf"a","b"\r\n1,"x"\r\n2,"y"\r\n', split_bytes=5) == expected


def test_quotes_hold_commas_quotes_and_line_ends() -> None:
    data = b'id,text\n1,"a,b"\n2,"say ""hi"""\n3,"two\r\nlines"\n4,\n5,"\n\n"\n'
    expected = ["a,b", 'say "hi"', "two\r\nlines", "", "\n\n"]
    for block_bytes in range(1, len(data)):
        assert columns(data, split_bytes=8, block_bytes=block_bytes)["text"] == expected


def test_a_line_end_within_quotes_among_the_first_rows_makes_one_split() -> None:
    rows = b"".join(b'%d,"x,y"\n' % i for i in range(100))
    options = ReadOptions(split_bytes=64)
    assert len(plan(CSV, Bytes(b"a,b\n" + rows), options=options).splits) > 10
    assert len(plan(CSV, Bytes(b'a,b\n0,"x\ny"\n' + rows), options=options).splits) == 1
    assert len(plan(CSV, Bytes(b"a,b\n" + rows), options=ReadOptions(split_bytes=0)).splits) == 1


def test_a_line_end_within_quotes_beyond_the_first_rows_is_never_a_wrong_row() -> None:
    plain = b"".join(b"%07d,plain\n" % i for i in range(80_000))
    late = b"".join(b'%d,"first ""line""\nsecond, line\nthird"\n' % i for i in range(100))
    data = b"id,text\n" + plain + late + plain[:4900]
    rows = columns(data, split_bytes=0)
    assert rows["text"][80_000:80_100] == ['first "line"\nsecond, line\nthird'] * 100
    sizes = range(len(plain) - 50, len(plain) + 200, 7)
    assert {outcome(data, split_bytes, rows) for split_bytes in sizes} == {"right", "refused"}


def outcome(data: bytes, split_bytes: int, expected: dict[str, list[object]]) -> str:
    try:
        found = columns(data, split_bytes=split_bytes)
    except FormatError as error:
        return "refused" if "split_bytes=0" in str(error) else str(error)
    return "right" if found == expected else "wrong"


def test_a_quote_within_unquoted_text_is_text() -> None:
    data = b'size,name\n12" disk,"a\nb"\n5,"c"\nx"y",z\n'
    for block_bytes in range(1, len(data)):
        found = columns(data, split_bytes=5, block_bytes=block_bytes)
        assert found == {"size": ['12" disk', "5", 'x"y"'], "name": ["a\nb", "c", "z"]}


def test_types_are_read_off_the_first_rows() -> None:
    data = (
        b"i,f,b,s,mixed,big,none,l,lf,date\n"
        b'1,1.5,true,x,1,18446744073709551615,,"[1, 2]",[0.5],2024-01-01\n'
        b'-2,2,false,NA,a,1,,[],"[1,2e3]",2024-01-02\n'
    )
    schema = plan(CSV, Bytes(data)).schema
    assert schema is not None
    assert [str(field.type) for field in schema] == [
        "int64",
        "float",
        "bool",
        "string",
        "string",
        "uint64",
        "string",
        "list<item: int64>",
        "list<item: float>",
        "string",
    ]
    assert read(CSV, data, ["s", "l", "lf"]).to_pydict() == {
        "s": ["x", "NA"],
        "l": [[1, 2], []],
        "lf": [[0.5], [1.0, 2000.0]],
    }


def test_empty_and_na_are_null_but_for_text() -> None:
    data = b"i,f,s,one\n1,0.5,a,1\n,NA,NA,\nNA,nan,,null\n"
    found = read(CSV, data)
    assert found["i"].to_pylist() == [1, None, None]
    assert found["f"].to_pylist()[:2] == [0.5, None]
    assert found["f"].null_count == 1
    assert found["s"].to_pylist() == ["a", "NA", ""]
    assert found["one"].to_pylist() == [1, None, None]


def test_one_column_keeps_its_empty_rows() -> None:
    assert columns(b"x\n1\n\n3\n") == {"x": [1, None, 3]}
    table = pa.table({"x": pa.array([None, 1, None, None], pa.int64())})
    assert read(CSV, encode(CSV, table), types={"x": pa.int64()}).equals(table)


def test_gzip_of_several_members_is_one_split() -> None:
    data = gzip.compress(b"a,b\n1,x\n2,") + gzip.compress(b"y\n") + bytes(7)
    assert columns(data, split_bytes=4, block_bytes=16) == {"a": [1, 2], "b": ["x", "y"]}
    with pytest.raises(CorruptData, match="other bytes follow"):
        columns(data + b"rubbish")


def test_only_the_head_is_read_to_plan_and_neighbours_share_no_row() -> None:
    data = b"id,text\n" + b"".join(b"%08d,%s\n" % (i, b"x" * 90) for i in range(50_000))
    source = Bytes(data)
    made = plan(CSV, source, options=ReadOptions(split_bytes=2**20))
    assert sum(length for _, length in source.asked) == 2**20
    assert len(made.splits) == 5
    ids = read(CSV, data, ["id"], options=ReadOptions(split_bytes=2**20, block_bytes=2**18))
    assert ids["id"].to_pylist() == list(range(50_000))


def test_a_range_reads_no_more_beyond_its_end_than_a_row_needs() -> None:
    row = b"x" * 99 + b"\n"
    data, block, slack = b"a\n" + row * 80_000, 2**20, 2**16
    for start, end in ((0, 5 * block + 1), (block, 4 * block - 1), (7 * block, 7 * block + 9)):
        source = Bytes(data)
        split = Split(start, end, ranges=((0, 2),) if start else ())
        decoding = CSV.decode(
            len(data), split, pa.schema({"a": pa.string()}), ReadOptions(block_bytes=block)
        )
        rows = sum(batch.num_rows for batch in drive(decoding, source.read))
        assert abs(rows - (end - start) / len(row)) < 1.1
        first = max(start - 1, 0)
        asked = [each for each in source.asked if each != (0, 2)]
        assert sum(length for _, length in asked) == min(end + slack, len(data)) - first


def test_a_row_longer_than_splits_and_blocks() -> None:
    data = b"a,b\n1," + b"x" * 500 + b"\n2,y\n"
    for split_bytes in (10, 100, 507, 508, 509):
        found = columns(data, split_bytes=split_bytes, block_bytes=20)
        assert found == {"a": [1, 2], "b": ["x" * 500, "y"]}


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"", CorruptData, "header line"),
        (b"\n1,2\n", CorruptData, "header line"),
        (b"a,a\n1,2\n", SchemaMismatch, "'a' is in the file twice"),
        (b"a\x00b\n1\n", CorruptData, "NUL"),
        (b"\xff\xfea\n", CorruptData, "UTF-8"),
        (b"a,b\n1,2\n3\n", CorruptData, r"row 2 after the header: Expected 2 columns, got 1"),
        (b"a,b\n1,2\n3,4,5\n", CorruptData, r"row 2 after the header: Expected 2 columns, got 3"),
        (b"a,b\nx,y\nx,\xff\n", CorruptData, r"row 2 after the header, column 'b'.*UTF-8"),
        (b'a,b\n1,"x\ny\n', CorruptData, "within quotes"),
    ],
)
def test_damage_is_told_with_its_place(data: bytes, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        read(CSV, data)


def test_a_later_value_of_another_type_says_the_way_out() -> None:
    rows = b"".join(b"%d,1\n" % i for i in range(300_000))
    data = b"id,n\n" + rows + b"7,3.5\n"
    with pytest.raises(SchemaMismatch, match=r"row 300001 .*column 'n'.*'3.5'.*types=\{'n'"):
        read(CSV, data, options=ReadOptions(split_bytes=0))
    found = read(CSV, data, ["n"], {"n": pa.float64()})
    assert found["n"][-1].as_py() == 3.5


@pytest.mark.parametrize(
    ("cell", "dtype"),
    [
        (b'"[1,x]"', pa.list_(pa.int64())),
        (b"1", pa.list_(pa.int64())),
        (b"[[1]]", pa.list_(pa.int64())),
        (b'"[1,2]"', pa.list_(pa.int64(), 3)),
        (b"a b", pa.list_(pa.string())),
        (b"[1]", pa.list_(pa.string())),
        (b"?", pa.binary()),
        (b"2.5", pa.int8()),
        (b"300", pa.int8()),
    ],
)
def test_a_cell_that_is_not_its_type(cell: bytes, dtype: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match="column 'x'"):
        read(CSV, b"x,y\n" + cell + b",1\n", types={"x": dtype})


def test_a_file_whose_columns_differ_from_those_planned() -> None:
    schema = pa.schema([("b", pa.int64()), ("a", pa.int64())])
    other = Bytes(b"c,b,a\n1,2,3\n")
    made = FilePlan(schema, plan(CSV, other).splits)
    assert [batch.to_pydict() for batch in batches(CSV, other, made)] == [{"b": [2], "a": [3]}]
    lacking = Bytes(b"c,b\n1,2\n")
    with pytest.raises(SchemaMismatch, match="no column 'a'"):
        list(batches(CSV, lacking, FilePlan(schema, plan(CSV, lacking).splits)))


@pytest.mark.parametrize("quote", ["", '"'])
def test_rows_beyond_what_is_parsed_at_once(quote: str) -> None:
    """Arrow gets a block in parts of 1 MiB, and as a whole when a row is longer."""
    texts = ["x" * n for n in (10, 3 * 2**20, 0, 700_000, 700_000)]
    texts[2] = "line\nend" if quote else ""
    table = pa.table({"id": range(5), "text": texts})
    lines = "".join(f"{i},{quote}{text}{quote}\n" for i, text in enumerate(texts))
    found = read(CSV, b"id,text\n" + lines.encode(), options=ReadOptions(block_bytes=2**23))
    assert found.equals(table)


def test_a_damaged_row_is_numbered_through_all_parts_of_its_block() -> None:
    rows = ["1,2\n"] * 700_000
    rows[600_000] = "1,x\n"
    data = b"a,b\n" + "".join(rows).encode()
    options = ReadOptions(split_bytes=0, block_bytes=2**23)
    with pytest.raises(SchemaMismatch, match="row 600001 after the header, column 'b'"):
        read(CSV, data, options=options)


def test_float32_comes_back_to_the_last_bit() -> None:
    """It is read as float64 and rounded once more."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20_000, np.uint64).astype(np.uint32)
    values = bits.view(np.float32)[np.isfinite(bits.view(np.float32))]
    table = pa.table({"x": values})
    assert read(CSV, encode(CSV, table), types={"x": pa.float32()}).equals(table)
    beyond = read(CSV, b"x\n1e39\n-1e39\n1e-46\n", types={"x": pa.float32()})
    assert beyond["x"].to_pylist() == [np.inf, -np.inf, 0.0]


@pytest.mark.parametrize("block_bytes", [1, 3, 7, 100])
def test_rows_are_whole_however_blocks_cut_them(block_bytes: int) -> None:
    data = b'first row\nsecond,"a\nb"\nthird\n' + b"x" * 50 + b"\nlast"
    buffer, found = RowBuffer(cut=False), b""
    for start in range(0, len(data), block_bytes):
        buffer.push(data[start : start + block_bytes])
        rows, _ = buffer.take()
        found += rows
        assert not rows or rows.endswith(b"\n")
        assert found.count(b'"') % 2 == 0
    buffer.finish()
    assert found + buffer.take()[0] == data + b"\n"
    assert found.startswith(b"first row\n")


def test_a_text_with_nul_is_not_written() -> None:
    with pytest.raises(SchemaMismatch, match="NUL"):
        encode(CSV, pa.table({"a": ["x\0"]}))


def test_types_of_an_unknown_column() -> None:
    with pytest.raises(SchemaMismatch, match="no column 'c'"):
        read(CSV, b"a,b\n1,2\n", types={"c": pa.int64()})


@pytest.mark.parametrize("columns", [1, 2])
def test_a_line_end_within_quotes_may_be_at_the_end_of_any_block(columns: int) -> None:
    text = 'a,\r\n""b""\n\n,c'
    lines = [",".join(["1"] * (columns - 1) + [f'"{text}"']), *["2" + ",3" * (columns - 1)] * 3]
    end = '2,"a\nb"' if columns == 2 else '"a\nb"'
    data = "\r\n".join([",".join("xy"[:columns]), *lines * 3, end]).encode()
    expected = list(csv.reader(io.StringIO(data.decode(), newline="")))[1:]
    for block_bytes in range(1, 60):
        options = ReadOptions(split_bytes=0, block_bytes=block_bytes)
        table = read(CSV, data, types=dict.fromkeys("xy"[:columns], pa.string()), options=options)
        assert [list(row.values()) for row in table.to_pylist()] == expected, block_bytes


@pytest.mark.parametrize("before", ["", "x"])
def test_a_line_end_within_quotes_may_be_where_arrow_cuts_its_blocks(before: str) -> None:
    texts = [before, *["\r\n" * 100] * 10_000]
    data = "".join(["text\n", *(f'"{text}"\n' for text in texts)]).encode()
    assert columns(data, split_bytes=0, block_bytes=2**20)["text"] == texts
