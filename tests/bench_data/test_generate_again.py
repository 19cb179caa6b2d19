"""What a second run of `generate` finds: a whole, an interrupted or a foreign data set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeprof.bench_data.generate import JOURNAL, generate
from pipeprof.errors import FormatError, OutputError
from pipeprof.manifest import MANIFEST
from tests.bench_data.test_generate import Interrupt, contents, interrupted, spec_of


def test_a_second_call_does_nothing(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    first = generate(spec)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert generate(spec, Interrupt(0)) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_progress_is_reported_from_nothing_to_all(tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    generate(spec_of(tmp_path), lambda done, total: reported.append((done, total)))
    total = reported[0][1]
    assert total == pytest.approx(400_000, rel=0.01)
    assert reported[0] == (0, total)
    assert reported[-1] == (total, total)
    assert sorted(reported) == reported


def test_an_interrupted_run_keeps_whole_shards_and_goes_on(tmp_path: Path) -> None:
    spec = spec_of(tmp_path / "broken")
    interrupted(spec)
    begun = contents(tmp_path / "broken")
    assert sorted(begun) == [JOURNAL, "part-00000-of-00004.csv", "part-00001-of-00004.csv"]

    written = (tmp_path / "broken" / "part-00001-of-00004.csv").stat().st_ino
    reported: list[int] = []
    generate(spec, lambda done, total: reported.append(done))
    assert reported[0] == reported[-1] * 78 // 157
    assert (tmp_path / "broken" / "part-00001-of-00004.csv").stat().st_ino == written
    generate(spec_of(tmp_path / "whole"))
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_a_run_killed_before_its_last_step_is_tidied_up(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    generate(spec)
    whole = contents(tmp_path)
    (tmp_path / JOURNAL).write_bytes((tmp_path / MANIFEST).read_bytes())
    (tmp_path / ".part-00002-of-00004.csv.abcd0123.tmp").write_bytes(b"half")
    (tmp_path / f".{MANIFEST}.abcd0123.tmp").write_bytes(b"half")
    generate(spec, Interrupt(0))
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("damage", ["lost", "cut short"])
def test_a_damaged_shard_is_written_again(damage: str, tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    generate(spec)
    whole = contents(tmp_path)
    shard = tmp_path / "part-00002-of-00004.csv"
    if damage == "lost":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[:-10])
    reported: list[int] = []
    generate(spec, lambda done, total: reported.append(done))
    assert reported[0] > 0.7 * reported[-1]
    assert contents(tmp_path) == whole


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"size_bytes": 500_000}, {"kind": "tabular"}, {"format": "tfrecord"},
               {"compression": "gzip"}, {"shards": 3}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
@pytest.mark.parametrize("state", ["whole", "interrupted"])
def test_another_data_set_is_refused_or_replaced(
    state: str, change: dict[str, Any], tmp_path: Path
) -> None:
    there = spec_of(tmp_path / "data")
    if state == "whole":
        generate(there)
    else:
        interrupted(there)
    before = contents(tmp_path / "data")
    other = spec_of(tmp_path / "data", **change)
    with pytest.raises(OutputError, match="another data set") as caught:
        generate(other)
    assert "seed 0, 157 rows in 4 files" in str(caught.value)
    assert contents(tmp_path / "data") == before

    generate(replace(other, overwrite=True))
    generate(spec_of(tmp_path / "alone", **change))
    assert contents(tmp_path / "data") == contents(tmp_path / "alone")


def test_an_interrupted_overwrite_goes_on_where_it_was(tmp_path: Path) -> None:
    generate(spec_of(tmp_path, seed=1))
    spec = spec_of(tmp_path, overwrite=True)
    interrupted(spec)
    reported: list[int] = []
    generate(spec, lambda done, total: reported.append(done))
    assert reported[0] > 0


def test_overwriting_the_same_data_set_writes_it_anew(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, overwrite=True)
    generate(spec)
    reported: list[int] = []
    generate(spec, lambda done, total: reported.append(done))
    assert reported[0] == 0


@pytest.mark.parametrize("foreign", ["notes.txt", "folder/", "part-00000-of-00009.csv"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_foreign_files_are_refused_and_never_removed(
    foreign: str, overwrite: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    if overwrite:
        generate(spec_of(folder, seed=1))
    folder.mkdir(exist_ok=True)
    if foreign.endswith("/"):
        (folder / foreign).mkdir()
    else:
        (folder / foreign).write_text("mine")
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(OutputError, match=f"did not write, {foreign}"):
        generate(spec_of(folder, overwrite=overwrite))
    assert sorted(path.name for path in folder.iterdir()) == before


def test_hidden_files_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").write_bytes(b"")
    generate(spec_of(tmp_path))
    assert (tmp_path / ".DS_Store").exists()


def test_a_manifest_cannot_make_us_remove_what_lies_elsewhere(tmp_path: Path) -> None:
    folder, outside = tmp_path / "data", tmp_path / "mine.csv"
    generate(spec_of(folder))
    outside.write_text("mine")
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text.replace("part-00000-of-00004.csv", "../mine.csv"))
    with pytest.raises(OutputError, match="part-00000-of-00004"):
        generate(spec_of(folder, seed=1, overwrite=True))
    assert outside.read_text() == "mine"


def test_a_damaged_manifest_is_reported_by_name(tmp_path: Path) -> None:
    generate(spec_of(tmp_path))
    (tmp_path / MANIFEST).write_bytes(b'{"schema": "pipep')
    with pytest.raises(FormatError, match=f"{tmp_path}/{MANIFEST} is not JSON"):
        generate(spec_of(tmp_path))
