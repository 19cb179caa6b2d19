"""WebDataset: the contract, and what is tar's own."""

from __future__ import annotations

import io
import tarfile

import pyarrow as pa
import pytest

from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats import detect, get
from pipeprof.formats.base import Fault, ReadOptions
from pipeprof.formats.decompress import Deflater
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import SMALL, Bytes, drive, encode, plan, read

WEBDATASET = get("webdataset")


class TestWebDataset(FormatContract):
    name = "webdataset"
    step = 509  # an archive is one split, and a header 512 bytes
    many_rows = 500  # a row has 2 KiB
    damage_step = 53
    damaged_compressions = 1

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        return bool(part.equals(whole))  # only part of the end mark is gone

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        """Headers have a checksum, files have none."""
        return False


def archive(
    files: dict[str, bytes], form: int = tarfile.PAX_FORMAT, folders: bool = False
) -> bytes:
    """By Python's own writer."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as tar:
        if folders:
            folder = tarfile.TarInfo("data")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return sink.getvalue()


PHOTOS = {
    "data/a.jpg": b"\xff\xd8 first",
    "data/a.cls": b"7",
    "data/a.json": b'{"width": 3}',
    "data/b.jpg": b"\xff\xd8 second",
    "data/b.cls": b" 8\n",
    "data/b.json": b"{}",
}


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_files_of_a_name_are_a_row(form: int) -> None:
    data = archive(PHOTOS, form, folders=True)
    for block_bytes in (17, 700, 2**20):
        found = read(WEBDATASET, data, options=ReadOptions(block_bytes=block_bytes))
        assert found.to_pydict() == {
            "jpg": [b"\xff\xd8 first", b"\xff\xd8 second"],
            "cls": [7, 8],
            "json": ['{"width": 3}', "{}"],
        }
    assert detect("x.bin", data[:4096], data[-4096:]).name == "webdataset"


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_and_names_that_are_not_utf_8(form: int) -> None:
    stem = "folder/" * 40 + "naïve-\udcff"
    data = archive({f"{stem}.txt": b"one", f"{stem}.cls": b"1", "b.txt": b"two"}, form)
    assert read(WEBDATASET, data).to_pydict() == {"txt": ["one", "two"], "cls": [1, None]}


def test_a_dot_in_a_folder_and_several_in_a_name() -> None:
    data = archive({"v1.0/a.seg.png": b"\x89", "v1.0/a.cls": b"1", "v1.0/README": b"no sample"})
    assert read(WEBDATASET, data).to_pydict() == {"seg.png": [b"\x89"], "cls": [1]}


def test_links_are_no_files() -> None:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        link = tarfile.TarInfo("a.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        file = tarfile.TarInfo("a.cls")
        file.size = 1
        tar.addfile(file, io.BytesIO(b"1"))
    assert read(WEBDATASET, sink.getvalue()).to_pydict() == {"cls": [1]}


def test_a_sample_that_lacks_a_file_has_a_null() -> None:
    data = archive({"a.txt": b"x", "a.cls": b"1", "b.cls": b"2", "c.txt": b"y"})
    assert read(WEBDATASET, data).to_pydict() == {"txt": ["x", None, "y"], "cls": [1, 2, None]}


def test_a_text_that_is_no_number_names_the_column() -> None:
    data = archive({"a.cls": b"1", "b.cls": b"2"})
    with pytest.raises(SchemaMismatch, match="'cls'"):
        read(WEBDATASET, archive({"a.cls": b"x"}), ["cls"], {"cls": pa.int64()})
    assert read(WEBDATASET, data, ["cls"], {"cls": pa.string()})["cls"].to_pylist() == ["1", "2"]
    with pytest.raises(SchemaMismatch, match="'jpg' are not text in UTF-8"):
        read(WEBDATASET, archive(PHOTOS), ["jpg"], {"jpg": pa.string()})


def test_rows_that_do_not_fit_are_left_out_alone() -> None:
    data = archive({f"{i}.cls": b"x" if i == 5 else b"1" for i in range(9)})
    [split], faults = plan(WEBDATASET, Bytes(data)).splits, list[Fault]()
    schema = pa.schema([("cls", pa.int64())])
    decoding = WEBDATASET.decode(len(data), split, schema, ReadOptions())
    rows = sum(batch.num_rows for batch in drive(decoding, Bytes(data).read, faults.append))
    assert rows == 8
    assert sum(fault.rows or 0 for fault in faults) == 1


def test_damage_of_an_archive_says_where() -> None:
    data = archive(PHOTOS)
    with pytest.raises(CorruptData, match=r"ends at byte \d+ without the end mark"):
        read(WEBDATASET, data[:2048])
    with pytest.raises(CorruptData, match=r"header at byte 1024 is damaged .*checksum"):
        read(WEBDATASET, data[:1025] + b"?" + data[1026:])
    with pytest.raises(CorruptData, match="other bytes follow the end of the archive"):
        read(WEBDATASET, data + data)
    with pytest.raises(CorruptData, match=r"sample 'a' has two files 'cls'"):
        read(WEBDATASET, archive({"a.cls": b"1"})[:1024] + archive({"a.cls": b"2"}))


def test_a_file_that_claims_more_than_there_is() -> None:
    info = tarfile.TarInfo("a.jpg")
    info.size = 2**40
    with pytest.raises(CorruptData, match="its file has 1099511627776 bytes"):
        read(WEBDATASET, info.tobuf() + bytes(2048))


def test_a_row_of_nulls_is_a_sample() -> None:
    table = pa.table({"a": pa.array([1, None, 3])})
    assert read(WEBDATASET, encode(WEBDATASET, table)).equals(table)


def test_a_column_that_cannot_be_an_extension() -> None:
    with pytest.raises(SchemaMismatch, match="'a/b' cannot be the extension of a file"):
        WEBDATASET.encoder(pa.schema([("a/b", pa.int64())]))


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_archives(codec: str) -> None:
    data = Deflater(codec).compress(archive(PHOTOS), finish=True)
    assert read(WEBDATASET, data).num_rows == 2
    assert detect("x.bin", data[:4096], data[-4096:]).name == "webdataset"


def test_webdataset_style_names_of_our_writer() -> None:
    with tarfile.open(fileobj=io.BytesIO(encode(WEBDATASET, SMALL))) as tar:
        assert tar.getnames()[:3] == ["000000000.id", "000000000.word", "000000000.ids"]
