"""CSV as other software writes it, valid and damaged: the values, or a sentence that says what is
wrong."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import pipeprof
from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats import get
from pipeprof.formats.base import ReadOptions
from tests.contracts.format_samples import read

CSV = get("csv")
TEXT = {"a": pa.string(), "b": pa.string()}

VALID = {
    "excel": b'\xef\xbb\xbfa,b\r\n"1,5","x ""y"" z"\r\n"two\r\nlines",\r\n',
    "unix": b"a,b\n1,x\n2,y\n",
    "no final line end": b"a,b\n1,x\n2,y",
    "CR and LF by turns": b"a,b\r\n1,x\n2,y\r\n",
    "quoted header": b'"a","b"\n1,x\n',
    "all quoted": b'"a","b"\n"1","x"\n"",""\n',
    "only quotes": b'a,b\n"""","""""".\n',
    "quote within text": b"a,b\n5\" disk,6'\n",
    "spaces around": b"a,b\n 1 , x \n",
    "other scripts": "a,b\nгод,年\n🦜,é\n".encode(),
    "line separators of Unicode are text": "a,b\n1\u2028x,2\u0085y\n".encode(),
    "tabs and semicolons are text": b"a,b\n1;2,3\t4\n",
    "long fields": b"a,b\n" + b"x" * 100_000 + b"," + b"y" * 100_000 + b"\n",
    "header only": b"a,b\n",
    "header only, no line end": b"a,b",
    "two files in one, each with its byte-order mark": b"\xef\xbb\xbfa,b\n\xef\xbb\xbfa,b\n1,x\n",
    "empty rows at the end": b"a,b\n1,x\n\n\r\n\n",
}
REFUSED = {
    "empty": (b"", CorruptData, "does not begin with a header line"),
    "a byte-order mark alone": (b"\xef\xbb\xbf", CorruptData, "does not begin with a header line"),
    "an empty first line": (b"\na,b\n1,2\n", CorruptData, "does not begin with a header line"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), CorruptData, "NUL"),
    "NUL bytes": (b"a,b\n1,\x002\n", CorruptData, "NUL"),
    "Latin-1 in the header": (b"a,\xe9\n1,2\n", CorruptData, "not a CSV header in UTF-8"),
    "Latin-1 in a row": (b"a,b\n1,x\n2,\xe9\n", CorruptData, "row 2 after the header, column 'b'"),
    "too few fields": (b"a,b\n1,x\n2\n", CorruptData, "row 2 after the header: Expected 2 columns"),
    "too many fields": (b"a,b\n1,x\n2,y,z\n", CorruptData, "row 2 .*: Expected 2 columns, got 3"),
    "two columns of one name": (b"a,b,a\n1,2,3\n", SchemaMismatch, "'a' is in the file twice"),
    "a quote that never closes": (b'a,b\n1,"x\n2,y\n', CorruptData, "within quotes.*truncated"),
    "a quote that never closes in the header": (b'a,"b\n1,2\n', CorruptData, "within quotes"),
    "old Macintosh line ends": (b"a,b\r1,x\r2,y\r", CorruptData, "header"),
    "text after a quoted field in the header": (b'"a"x,b\n1,2\n', CorruptData, "CSV header"),
}


def by_python(data: bytes) -> list[list[str]]:
    """Rows by the standard library, without those that are empty."""
    text = data.decode("utf-8-sig")
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("block_bytes", [3, 16, 17, 64, 2**22])
def test_a_valid_file_is_read_as_python_reads_it(name: str, block_bytes: int) -> None:
    if len(VALID[name]) > 1000 * block_bytes:
        block_bytes = 1000
    options = ReadOptions(split_bytes=40, block_bytes=block_bytes)
    found = read(CSV, VALID[name], types=TEXT, options=options)
    header, *rows = by_python(VALID[name])
    assert found.column_names == header
    assert [list(row.values()) for row in found.to_pylist()] == rows


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_file_is_refused_with_what_is_wrong(name: str) -> None:
    data, kind, says = REFUSED[name]
    for block_bytes in (3, 2**22):
        with pytest.raises(kind, match=says) as raised:
            read(CSV, data, options=ReadOptions(block_bytes=block_bytes))
        assert "\n" not in str(raised.value)


def test_a_later_file_with_more_or_fewer_columns(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "2.csv").write_bytes(b"b,more,a\n4,0,3\n")
    rows = [batch["a"].tolist() for batch in pipeprof.open_dataset(str(tmp_path))]
    assert rows == [[1, 3]]  # those of the first are there, in any order
    (tmp_path / "3.csv").write_bytes(b"a\n1\n")
    with pytest.raises(SchemaMismatch, match=r"3\.csv: there is no column 'b'.* There are a\."):
        pipeprof.open_dataset(str(tmp_path))
    (tmp_path / "3.csv").write_bytes(b"a,b\n1,x\n")
    with pytest.raises(SchemaMismatch, match=r"3\.csv has other types than .*: 'b' is string, not"):
        pipeprof.open_dataset(str(tmp_path))


LONG_LINE = """
import pathlib, re, sys
from pipeprof.errors import CorruptData
from pipeprof.formats import get
from pipeprof.formats.base import ReadOptions, drive_plan, FilePlan, Split
from tests.contracts.format_samples import drive
import pyarrow as pa
import pyarrow.csv, pyarrow.compute

GIB = 2**30
head, fill = sys.argv[1].encode(), sys.argv[2].encode()
block = memoryview(fill * 2**23)

def read(offset, length):
    "Of a line of a gigabyte that is nowhere stored."
    begin = head[offset : offset + length]
    return begin + bytes(block[: length - len(begin)])

def most_kib():
    "The most memory that this process had: `ru_maxrss` may be that of the one it was forked from."
    return int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])

csv, options = get("csv"), ReadOptions(split_bytes=0)
before = most_kib()
try:
    plan = drive_plan(csv.plan(GIB, None, {}, options), read)
    for batch in drive(csv.decode(GIB, plan.splits[0], plan.schema, options), read):
        pass
except CorruptData as error:
    print((most_kib() - before) // 1024, error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "fill"), [("", "x"), ('a,b\n1,"', "x\n")], ids=["without line ends", "within quotes"]
)
def test_a_line_of_a_gigabyte_is_refused_before_it_is_all_in_memory(head: str, fill: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LONG_LINE, head, fill], capture_output=True, text=True, check=True
    )
    more_mib, _, told = done.stdout.strip().partition(" ")
    assert told == "a row is longer than 134217728 bytes; this is not CSV."
    assert 64 < int(more_mib) < 600
