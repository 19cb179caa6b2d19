"""A data set on disk: its rows, the names and sizes of its files, and the memory that it takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipeprof import formats
from pipeprof.bench_data import KINDS, rows
from pipeprof.bench_data.generate import GenerateSpec, generate, make_plan
from pipeprof.errors import OutputError, UsageError
from pipeprof.formats.base import ReadOptions, drive_plan
from pipeprof.formats.types import parse_type
from pipeprof.manifest import MANIFEST, Manifest, loads
from tests.contracts.format_samples import drive, meaning
from tests.support.env import UNWATCHED


def spec_of(folder: Path | str, **changes: Any) -> GenerateSpec:
    small = GenerateSpec(str(folder), "tokens", "csv", 400_000, shards=4)
    return replace(small, **changes)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def read_rows(folder: Path, manifest: Manifest) -> pa.Table:
    """Return the rows that the files hold, read with the manifest's types."""
    types = {name: parse_type(text) for name, text in manifest.columns.items()}
    form, options = formats.get(manifest.format), ReadOptions()
    batches = []
    for file in manifest.files:
        data = (folder / file.name).read_bytes()

        def read(offset: int, length: int, data: bytes = data) -> bytes:
            return data[offset : offset + length]

        plan = drive_plan(form.plan(len(data), list(types), types, options), read)
        assert plan.schema is not None
        for split in plan.splits:
            batches += drive(form.decode(len(data), split, plan.schema, options), read)
    return pa.Table.from_batches(batches)


class Interrupt:
    """Presses Ctrl-C when ``share`` of the rows are written."""

    def __init__(self, share: float) -> None:
        self.share = share

    def __call__(self, done: int, total: int) -> None:
        if done >= self.share * total:
            raise KeyboardInterrupt


def interrupted(spec: GenerateSpec, share: float = 0.6) -> None:
    with pytest.raises(KeyboardInterrupt):
        generate(spec, Interrupt(share))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", formats.WRITTEN)
def test_the_same_seed_gives_the_same_rows_in_every_format(
    kind: str, form: str, tmp_path: Path
) -> None:
    spec = spec_of(tmp_path, kind=kind, format=form, seed=5)
    manifest = generate(spec)
    expected = rows.get(kind)
    assert manifest.rows == -(-spec.size_bytes // expected.mean_row_bytes)
    [batch] = rows.batches(expected, 5, 0, manifest.rows, manifest.rows)
    found, expected_rows = read_rows(tmp_path, manifest), pa.Table.from_batches([batch])
    assert found.schema == expected_rows.schema
    assert meaning(found) == meaning(expected_rows)  # MDS stores no nulls
    assert form == "mds" or found.equals(expected_rows)


def test_a_longer_data_set_in_other_shards_begins_with_the_shorter_one(tmp_path: Path) -> None:
    short = generate(spec_of(tmp_path / "short"))
    long = generate(spec_of(tmp_path / "long", size_bytes=900_000, shards=3))
    begun = read_rows(tmp_path / "long", long).slice(0, short.rows)
    assert begun.equals(read_rows(tmp_path / "short", short))


def test_the_manifest_says_what_lies_there(tmp_path: Path) -> None:
    manifest = generate(spec_of(tmp_path))
    assert manifest == loads((tmp_path / MANIFEST).read_bytes())
    assert sorted(contents(tmp_path)) == [MANIFEST, *(file.name for file in manifest.files)]
    assert [file.bytes for file in manifest.files] == [
        (tmp_path / file.name).stat().st_size for file in manifest.files
    ]
    assert [file.rows for file in manifest.files] == [39, 39, 39, 40]
    assert manifest.columns == {"doc_id": "int64", "tokens": "list<int64>"}
    assert manifest.files[0].name == "part-00000-of-00004.csv"


@pytest.mark.parametrize(
    ("form", "compression", "suffix"),
    [("csv", "gzip", ".csv.gz"), ("tfrecord", "gzip", ".tfrecord.gz"),
     ("tfrecord", "zlib", ".tfrecord.zz"), ("parquet", "zstd", ".parquet")],
)  # fmt: skip
def test_compression_shows_in_the_name_where_it_is_custom(
    form: str, compression: str, suffix: str, tmp_path: Path
) -> None:
    plain = generate(spec_of(tmp_path / "plain", format=form))
    packed = generate(spec_of(tmp_path / "packed", format=form, compression=compression))
    assert packed.files[0].name == f"part-00000-of-00004{suffix}"
    assert packed.compression == compression
    if form != "parquet":
        assert packed.bytes < 0.9 * plain.bytes
    assert read_rows(tmp_path / "packed", packed).equals(read_rows(tmp_path / "plain", plain))


def test_shards_are_of_64_mib_but_at_least_8(tmp_path: Path) -> None:
    def shards(size: int) -> int:
        return make_plan(spec_of(tmp_path, size_bytes=size, shards=None)).shards

    assert shards(10 * 2**20) == 8
    assert shards(2**30) == 16
    assert shards(5000) == 2  # two rows


def test_parquet_has_row_groups_of_about_8_mib(tmp_path: Path) -> None:
    import pyarrow.parquet

    generate(spec_of(tmp_path, format="parquet", size_bytes=25 * 2**20, shards=1))
    file = pyarrow.parquet.ParquetFile(tmp_path / "part-00000-of-00001.parquet")
    assert file.num_row_groups == 4
    assert file.read_row_group(0).nbytes == pytest.approx(8 * 2**20, rel=0.15)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "video"}, "not a kind"),
        ({"format": "avro"}, "not a format"),
        ({"compression": "lzma"}, "none, gzip"),
        ({"shards": 0}, "choose 1 to 157"),
        ({"shards": 158}, "choose 1 to 157"),
        ({"size_bytes": 0}, "at least 1 byte"),
        ({"seed": -1}, "not negative"),
        ({"url": "nosuch://bucket/data"}, "nosuch"),
    ],
)
def test_what_cannot_be_is_a_wrong_call(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        generate(spec_of(tmp_path, **change))
    assert contents(tmp_path) == {}


@pytest.fixture
def memory() -> Iterator[str]:
    yield "memory://bucket/data"
    MemoryFileSystem.store.clear()


def test_on_an_object_store(memory: str, tmp_path: Path) -> None:
    spec = spec_of(memory, jobs=2)
    interrupted(spec)
    generate(spec)
    generate(spec_of(tmp_path))
    found = {
        name.rpartition("/")[2]: file.getvalue()
        for name, file in MemoryFileSystem.store.items()
        if name.startswith("/bucket/data/")
    }
    assert found == contents(tmp_path)
    assert generate(spec, Interrupt(0)).rows == 157
    with pytest.raises(OutputError, match="memory://bucket/data holds another"):
        generate(spec_of(memory, seed=1))
    generate(spec_of(memory, seed=1, overwrite=True))


# not ru_maxrss, which a process inherits from the one that started it
PEAK = """
import re, sys
from pathlib import Path
from pipeprof.bench_data.generate import GenerateSpec, generate
url, kind, form, size = sys.argv[1:]
manifest = generate(GenerateSpec(url, kind, form, int(size), shards=1))
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(manifest.bytes, int(peak[1]) * 1024)
"""


@pytest.mark.parametrize(
    ("kind", "form", "megabytes"),
    [("tokens", "csv", 20), ("tabular", "parquet", 60), ("tokens", "tfrecord", 20)],
)
def test_memory_does_not_grow_with_the_size(
    kind: str, form: str, megabytes: int, tmp_path: Path
) -> None:
    """All rows go into one shard, whose bytes would show in the peak if they were kept in
    memory."""

    def written_and_peak(size: int) -> tuple[int, int]:
        command = [sys.executable, "-c", PEAK, str(tmp_path / str(size)), kind, form, str(size)]
        done = subprocess.run(command, capture_output=True, check=True, env=UNWATCHED)
        written, peak = done.stdout.split()
        return int(written), int(peak)

    few, small = written_and_peak(megabytes * 10**6)
    many, large = written_and_peak(3 * megabytes * 10**6)
    assert large < 250e6, "two processes, which is the default, must stay under 500 MB"
    assert large - small < (many - few) / 2
