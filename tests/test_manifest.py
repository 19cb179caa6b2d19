"""The manifest of a generated data set, as loaders and people read it."""

from __future__ import annotations

import orjson
import pytest

from pipeprof.errors import FormatError
from pipeprof.manifest import Manifest, ManifestFile, dumps, loads

SMALL = Manifest(
    kind="tokens",
    format="csv",
    compression="none",
    seed=7,
    generator=1,
    size_bytes=1000,
    rows=3,
    shards=2,
    columns={"doc_id": "int64", "tokens": "list<int64>"},
    files=(ManifestFile("part-0.csv", 60, 2), ManifestFile("part-1.csv", 30, 1)),
)


def test_what_is_written_is_read_back() -> None:
    assert loads(dumps(SMALL)) == SMALL
    assert list(loads(dumps(SMALL)).columns) == ["doc_id", "tokens"]


def test_it_is_json_that_people_can_read() -> None:
    document = orjson.loads(dumps(SMALL))
    assert document["schema"] == "pipeprof.dataset/1"
    assert document["files"][1] == {"name": "part-1.csv", "bytes": 30, "rows": 1}
    assert dumps(SMALL).endswith(b"}\n")


def test_size_on_storage_is_that_of_the_files() -> None:
    assert SMALL.bytes == 90


def test_it_is_told_in_a_line() -> None:
    assert str(SMALL) == (
        "tokens in csv, no compression, seed 7, 3 rows in 2 files, about 1.00 kB in RAM"
    )


def changed(**fields: object) -> bytes:
    return orjson.dumps({**orjson.loads(dumps(SMALL)), **fields})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (dumps(SMALL)[:40], "cut short"),
        (b"", "not JSON"),
        (b"[1, 2]", "not the manifest"),
        (b'{"name": "something else"}', "not the manifest"),
        (changed(schema="pipeprof.dataset/99"), "'pipeprof.dataset/99'"),
        (changed(rows="three"), r"\$\.rows"),
        (changed(files=[{"name": "part-0.csv"}]), r"\$\.files\[0\]"),
    ],
)
def test_anything_else_is_refused_with_its_name(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says) as caught:
        loads(data, "s3://bucket/_pipeprof.json")
    assert "s3://bucket/_pipeprof.json" in str(caught.value)
