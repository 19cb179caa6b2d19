"""Which format an object is, told from its bytes and its name."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib

import pyarrow as pa
import pytest

from pipeprof.errors import FormatError, UsageError
from pipeprof.formats import FORMATS, detect, get
from tests.contracts.format_samples import SMALL, encode


def test_formats_are_found_by_name() -> None:
    assert [get(name).name for name in FORMATS] == list(FORMATS)
    with pytest.raises(UsageError, match="'orc' is not a format; choose one of csv, parquet"):
        get("orc")


def test_listing_formats_loads_none() -> None:
    code = "import sys, pipeprof.formats; sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def kind(name: str, data: bytes) -> str:
    return detect(name, data[:4096], data[-4096:]).name


@pytest.mark.parametrize("name", ["x.csv", "x", "x.parquet", "x.tfrecord", "x.bin", "x.csv.gz"])
def test_content_goes_before_the_name(name: str) -> None:
    assert kind(name, encode(get("parquet"), SMALL)) == "parquet"
    for compression in get("tfrecord").compressions:
        assert kind(name, encode(get("tfrecord"), SMALL, compression)) == "tfrecord"


def test_text_is_csv_by_its_name_alone() -> None:
    text = b"a,b\n1,2\n"
    assert kind("folder/x.CSV", text) == "csv"
    assert kind("x.csv.gz", gzip.compress(text)) == "csv"
    assert kind("x.csv-00000-of-00010", text) == "csv"
    assert kind("PAR1.csv", b"PAR1,b\n1,2\n") == "csv"
    with pytest.raises(FormatError, match=r"x\.txt is text, and neither.*\.csv, \.parquet"):
        kind("x.txt", text)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.parquet", b"a,b\n1,2\n", "named like parquet, but it is not: it is text"),
        ("x.tfrecord", b"a,b\n1,2\n" * 9, "named like tfrecord, but it is not: it is text"),
        ("x.csv", b"PK\x03\x04\0\0", "named like csv.*is a zip archive"),
        ("x.parquet", gzip.compress(b"a,b\n", mtime=0), "is compressed by gzip"),
        ("x.bin", b"\x01\x00\x02", "is of unknown content"),
        ("x.bin", b"\x1f\x8b no gzip after all", "is compressed by gzip"),
        ("x", b"", "x is empty, and neither"),
    ],
)
def test_a_name_that_promises_something_else(name: str, data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        kind(name, data)


def test_damaged_objects_keep_the_format_of_their_name() -> None:
    parquet = encode(get("parquet"), SMALL)
    assert kind("x.parquet", parquet[:-20]) == "parquet"
    assert kind("x.parquet", b"XXXX" + parquet[4:]) == "parquet"
    records = encode(get("tfrecord"), pa.table({"a": [b"\x00" * 30]}))
    assert kind("x.tfrecord", b"\x01" + records[1:]) == "tfrecord"
    for name in FORMATS:
        assert kind(f"x{get(name).suffixes[0]}", b"") == name


def test_a_compressed_head_that_is_cut_or_damaged_is_still_told_or_refused() -> None:
    noise = pa.table(
        {"a": [bytes((i * 7919 + j * j) % 251 for j in range(500)) for i in range(99)]}
    )
    for compression in ("gzip", "zlib"):
        data = encode(get("tfrecord"), noise, compression)
        assert detect("x", data[:100], data[-100:]).name == "tfrecord"
    with pytest.raises(FormatError):
        kind("x", zlib.compress(b"no records at all")[:-3])
