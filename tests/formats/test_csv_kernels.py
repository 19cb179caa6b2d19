"""CSV by kernels: whatever they read, Arrow reads the same, to the last bit and the last word."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.errors import FormatError
from pipeprof.formats import compiled, get
from pipeprof.formats.base import ReadOptions, Split
from pipeprof.formats.compiled import SWITCH, kernels
from pipeprof.formats.csv_reader import KERNELS, Reader
from pipeprof.formats.csv_rows import first_row_end, last_row_end, octets
from tests.contracts.format_contract import read
from tests.needs import missing

CSV = get("csv")
NAN = float("nan")


@pytest.fixture(scope="module", autouse=True)
def numba() -> None:
    if find_spec("numba") is None:
        missing("numba is not installed")
    assert kernels(KERNELS) is not None


def module(name: str) -> ModuleType:
    found = kernels(f"pipeprof.formats.{name}")
    assert found is not None
    return found


def without_kernels(run: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "0")
        return run()


def outcome(data: bytes, types: dict[str, pa.DataType], block_bytes: int = 2**22) -> object:
    """What comes of it, as something to compare: NaN and -0.0 too."""
    try:
        table = read(CSV, data, list(types), types, ReadOptions(64, block_bytes))
    except FormatError as error:
        return type(error), str(error)
    return [
        (str(column.type), [_exactly(cell) for cell in column.to_pylist()])
        for column in table.columns
    ]


def _exactly(cell: object) -> object:
    return cell.hex() if isinstance(cell, float) else cell


def both(data: bytes, types: dict[str, pa.DataType], block_bytes: int = 2**22) -> object:
    """The same with kernels and without."""
    found = outcome(data, types, block_bytes)
    assert found == without_kernels(lambda: outcome(data, types, block_bytes)), data
    return found


TYPES = {
    "f": pa.float32(),
    "d": pa.float64(),
    "h": pa.float16(),
    "i": pa.int64(),
    "u": pa.uint64(),
    "b": pa.int8(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "list": pa.list_(pa.int64()),
    "blob": pa.binary(),
}
ROWS = (
    "1.5,-0.0,0.25,-9,18446744073709551615,-128,true,a b,[1],YQ==",
    '-1e-3,.5,1,0012,0,7,FALSE,"x,y","[1,2]",""',
    'nan,-inf,,"12",,NA,1,"say ""hi""",[],"YQ=="',
    "1e39,1e400,inf, 5 ,7,0,0,жук,,",
    ",null,NA,-9223372036854775808,N/A,None,,NULL,NULL,",
    '"2","-2.5",3,9223372036854775807,1,1,True,"two\nlines",[-1],',
)
PIECES = [*'",\n\r\t .-+eE0123456789', "\r\n", '""', "nan", "NA", "é", "\xff", "1.5", "true", "[1]"]


def table(rows: list[str], line_end: str) -> bytes:
    lines = [",".join(TYPES), *rows]
    return (line_end.join(lines) + line_end).encode("utf-8", "replace")


@given(
    st.lists(st.sampled_from(ROWS), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 900),
)
def test_rows_of_every_type(rows: list[str], line_end: str, block_bytes: int) -> None:
    found = both(table(rows, line_end), TYPES, block_bytes)
    if rows:
        assert isinstance(found, list), found


@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=8), st.data())
def test_damaged_rows_are_read_or_refused_in_the_same_words(
    rows: list[str], data: st.DataObject
) -> None:
    whole = table(rows, "\n")
    start = whole.index(b"\n") + 1
    at = data.draw(st.integers(start, len(whole)))
    end = data.draw(st.integers(at, min(at + 3, len(whole))))
    put = data.draw(st.lists(st.sampled_from(PIECES), max_size=3))
    both(whole[:at] + "".join(put).encode("latin-1") + whole[end:], TYPES)


def decimals(random: Random) -> list[str]:
    """Printed in many ways: shortest, cut, long, with large exponents."""
    bits = [random.getrandbits(64) for _ in range(4000)]
    doubles = np.array(bits, np.uint64).view(np.float64)
    singles = np.array(bits, np.uint64).astype(np.uint32).view(np.float32)
    usual = [random.gauss(0, 1) * 10 ** random.randint(-6, 9) for _ in range(4000)]
    texts = [repr(float(x)) for x in doubles[np.isfinite(doubles)]]
    texts += [str(x) for x in singles[np.isfinite(singles)]]
    for form in ("%r", "%.3f", "%.6g", "%.17g", "%.18e", "%.19g"):
        texts += [form % x for x in usual]
    for _ in range(4000):
        digits = random.randrange(10 ** random.randint(1, 19))
        texts.append(f"{digits}e{random.randint(-330, 300)}")
    return texts


def halfway(random: Random) -> list[str]:
    """Between two doubles, and a little beside: the hardest to round."""
    middles = [random.randrange(2**53, 2**54) | 1 for _ in range(3000)]
    even = [middle << random.randint(0, 5) for middle in middles]
    texts = [str(middle) for middle in even] + [f"{middle}.0" for middle in even]
    texts += [f"{middle}{digit}e-1" for middle in even for digit in "19"]
    texts += [f"{middle // 2}.5" for middle in middles]
    return [text for text in texts if sum(c.isdigit() for c in text.partition("e")[0]) <= 19]


@pytest.mark.parametrize("make", [decimals, halfway])
def test_decimals_are_rounded_as_arrow_rounds_them(make: Callable[[Random], list[str]]) -> None:
    random = Random(0)
    texts = make(random)
    texts = [text for text in texts if known(text)]
    assert len(texts) > 9000
    data = ("\n".join(texts) + "\n").encode()
    for dtype in (pa.float64(), pa.float32()):
        [column] = module("csv_columns").read_columns(data, 1, [(0, dtype)])[1]
        truth = without_kernels(lambda dtype=dtype: read(CSV, b"x\n" + data, ["x"], {"x": dtype}))
        assert column.to_numpy().tobytes() == truth["x"].to_numpy().tobytes()


def known(text: str) -> bool:
    """Whether kernels read it: not what is too small for 53 bits, or infinite."""
    return 1e-300 < abs(float(text)) < 1e300


@given(
    st.lists(
        st.integers(-(2**64), 2**64) | st.sampled_from([2**63, 2**63 - 1, -(2**63), 10**18, 0])
    ),
    st.sampled_from([pa.int64(), pa.int32(), pa.uint8(), pa.uint64()]),
)
def test_integers(values: list[int], dtype: pa.DataType) -> None:
    both(b"x,y\n" + b"".join(b"%d,1\n" % value for value in values), {"x": dtype})


@pytest.mark.parametrize("text", ["+1", "0x1F", "1 2", "--1", "-", "1_0", "1e", "1.2.3", "1e5.0"])
@pytest.mark.parametrize("dtype", [pa.int64(), pa.float64(), pa.bool_()])
def test_what_is_no_plain_number(text: str, dtype: pa.DataType) -> None:
    both(f"x,y\n1,1\n{text},2\n".encode(), {"x": dtype})


def reader_that_only_has_kernels(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[bytes, pa.Schema], pa.RecordBatch]:
    def refuse(*_: object) -> None:
        raise AssertionError("Arrow was asked")

    monkeypatch.setattr(Reader, "read", refuse)
    return Reader(names, names, Split(0, 0)).parse


def test_plain_rows_are_never_asked_of_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = reader_that_only_has_kernels(["f", "i", "flag", "s", "none"], monkeypatch)
    types = (pa.float32(), pa.int16(), pa.bool_(), pa.string(), pa.float64())
    schema = pa.schema(list(zip(("f", "i", "flag", "s", "none"), types, strict=True)))
    rows = b'0.1,-7,true,"a ""b"", c",\n1e-7, 12,false,,NA\r\n"-3",NA,,\xc3\xa9,nan\n' * 3000
    batch = parse(rows, schema)
    batch.validate(full=True)
    assert batch.num_rows == 9000
    assert batch.slice(3, 3).to_pydict() == {
        "f": [np.float32(0.1), np.float32(1e-7), -3.0],
        "i": [-7, 12, None],
        "flag": [True, False, None],
        "s": ['a "b", c', "", "é"],
        "none": [None, None, pytest.approx(NAN, nan_ok=True)],
    }
    with pytest.raises(AssertionError, match="Arrow was asked"):
        parse(b"1,2,true,x\n", schema)


def test_a_row_of_more_columns_than_are_looked_for_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module("csv_columns"), "_ENDS", 8)
    monkeypatch.setattr(module("csv_columns"), "_AT_ONCE", 16)
    names = [f"c{i}" for i in range(500)]
    parse = reader_that_only_has_kernels(names, monkeypatch)
    line = ",".join(map(str, range(500))) + "\n"
    batch = parse(line.encode() * 5, pa.schema(dict.fromkeys(names, pa.int64())))
    assert batch.num_rows == 5
    assert batch["c499"].to_pylist() == [499] * 5


@given(st.lists(st.sampled_from([*'",\n\rab', "\r\n", '""', "x" * 60]), max_size=60))
def test_the_last_row_ends_where_reading_field_by_field_says(pieces: list[str]) -> None:
    data = "".join(pieces).encode()
    slow = without_kernels(lambda: last_row_end(data))
    assert last_row_end(data) == slow
    at = 0
    while step := first_row_end(data[at:]):
        at += step
    assert slow == at


def test_two_line_ends_within_quotes_in_the_last_row() -> None:
    data = b'a,b,c\n1,"x\ny","z\n'
    for run in (lambda: last_row_end(data), lambda: without_kernels(lambda: last_row_end(data))):
        assert run() == 6
    rows = b'1,"x\ny","z\nz"\n' * 3
    for block_bytes in range(1, 40):
        found = both(b"a,b,c\n" + rows, {"c": pa.string()}, block_bytes)
        assert found == [("string", ["z\nz"] * 3)]


def test_kernels_stay_within_the_memory_that_they_are_given() -> None:
    """Each array ends where others begin, which must not change."""
    fields, values = module("csv_fields"), module("csv_values")
    random = Random(1)
    for _ in range(400):
        count, columns = random.randint(0, 150), random.randint(1, 4)
        text = bytes(random.choices(b'",\n\r-.e019 na', (1, 9, 9, *[2] * 10), k=count)) + b"\n"
        around = np.full(4096, 0xAA, np.uint8)
        data = octets(text)
        ends = around[:1024].view(np.int32)[: 2 * columns + 66]
        after = around[ends.nbytes :].copy()
        rows = fields.find_fields(
            data, 0, len(data), columns, ends, np.zeros(2, bool), np.empty(64, np.uint8)
        )
        assert (around[ends.nbytes :] == after).all()
        if rows <= 0:
            continue
        assert ends[1] >= 0
        assert (np.diff(ends[: rows * columns + 1]) > 0).all()
        assert ends[rows * columns] < len(data)
        for column in range(columns):
            some = (data, ends, column, columns, rows)
            size = values.count_text(*some) + values.COPIED
            text_around = np.full(size + 64, 0xAA, np.uint8)
            offsets = np.zeros(rows + 9, np.int32)
            values.read_text(*some, offsets, text_around[:size], True)
            values.read_text(*some, offsets, text_around[:size], False)
            assert (text_around[size:] == 0xAA).all()
            assert not offsets[rows + 1 :].any()
            for kernel, kind in (
                (values.read_floats, np.float64),
                (values.read_integers, np.int64),
                (values.read_flags, np.uint8),
            ):
                out, valid = np.full(rows + 8, 77, kind), np.full(rows + 8, 77, np.uint8)
                kernel(*some, out[:rows], valid[:rows])
                assert (out[rows:] == 77).all()
                assert (valid[rows:] == 77).all()


def test_without_numba_all_is_read_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(list(ROWS), "\n")
    expected = outcome(data, TYPES)
    monkeypatch.setitem(sys.modules, "pipeprof.formats.csv_columns", None)
    monkeypatch.setitem(sys.modules, "pipeprof.formats.csv_fields", None)
    compiled._loaded.cache_clear()
    assert kernels(KERNELS) is None
    assert outcome(data, TYPES) == expected
    compiled._loaded.cache_clear()
