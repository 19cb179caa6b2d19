"""Rank 0 waits for what the others save, but never for one that is dead."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pipeprof.cli.run_note import RANK_NOTE, Note, in_order, read_note
from pipeprof.cli.run_ranks import OtherRanks
from pipeprof.cli.run_save import save_and_note
from pipeprof.cli.run_settings import RunSettings
from pipeprof.errors import OutputError
from pipeprof.model import JobPlace
from pipeprof.storage.write import read_object

ALONE = JobPlace("torchrun", 0, world_size=2, local_world_size=2)
FAR = replace(ALONE, local_world_size=1)


def note(out: Path, rank: int, files: tuple[str, ...] = ("train.json",)) -> Note:
    """Have ``rank`` end in ``out``."""
    folder = out / f"host{rank}" / f"rank{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    left = Note(f"host{rank}", 100 + rank, rank, None, str(folder), files, ())
    left.write(str(folder / RANK_NOTE))
    return left


def waited(others: OtherRanks, place: JobPlace) -> tuple[list[int | None], float]:
    """The ranks that have come, and the seconds that this took."""
    begin = time.monotonic()
    notes = others.wait(place)
    return [note.rank for note in notes], time.monotonic() - begin


def test_what_has_been_saved_since(tmp_path: Path) -> None:
    others = OtherRanks(str(tmp_path))
    left = note(tmp_path, 1)
    assert others.wait(FAR) == [left]
    assert left.profiles == [f"{tmp_path}/host1/rank1/train.json"]


def test_what_an_earlier_run_left_is_not_taken_for_it(tmp_path: Path) -> None:
    note(tmp_path, 1)
    others = OtherRanks(str(tmp_path), idle_s=0.1)
    assert others.wait(FAR) == []
    note(tmp_path, 1, ("another.json",))
    assert [each.files for each in others.wait(FAR)] == [("another.json",)]


def test_no_rank_of_this_host_is_waited_for_once_none_is_left(tmp_path: Path) -> None:
    """This process and its parent have no other child."""
    script = (
        "import sys\n"
        "from tests.cli.test_run_others import ALONE, OtherRanks, waited\n"
        f"ranks, seconds = waited(OtherRanks({str(tmp_path)!r}, 60), ALONE)\n"
        "print(ranks, seconds < 5)"
    )
    launcher = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    done = subprocess.run([sys.executable, "-c", launcher], capture_output=True, text=True)
    assert done.stdout == "[] True\n", done.stderr


def test_a_live_one_is_waited_for(tmp_path: Path) -> None:
    """The note comes from a child of this process, which then ends."""
    others = OtherRanks(str(tmp_path), idle_s=60)
    write = (
        "import time\n"
        "from pathlib import Path\n"
        "from tests.cli.test_run_others import note\n"
        f"time.sleep(0.3), note(Path({str(tmp_path)!r}), 1)"
    )
    with subprocess.Popen([sys.executable, "-c", write]):
        ranks, seconds = waited(others, ALONE)
    assert ranks == [1]
    assert seconds > 0.3


def test_one_of_another_host_that_never_comes(tmp_path: Path) -> None:
    place = replace(FAR, world_size=3)
    others = OtherRanks(str(tmp_path), idle_s=0.5)
    note(tmp_path, 1)
    ranks, seconds = waited(others, place)
    assert ranks == [1]
    assert 0.5 <= seconds < 10


def test_the_ranks_of_a_large_job_are_not_waited_for(tmp_path: Path) -> None:
    others = OtherRanks(str(tmp_path), idle_s=60)
    left = note(tmp_path, 1)
    assert others.wait(replace(FAR, world_size=4096)) == [left]


def test_the_note_of_a_rank_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    out = "memory://someone:hunter2@host/run"
    settings = RunSettings((), False, None, None, 15.0, 0.05, out, False, False, True, "", "")
    left = save_and_note(settings, [], [], followed=False)
    written = read_object(f"{left.folder}/{RANK_NOTE}")
    assert b'"rank": 1' in written
    assert b"hunter2" not in written


def test_half_a_note_is_passed_over(tmp_path: Path) -> None:
    others = OtherRanks(str(tmp_path), idle_s=0.1)
    path = tmp_path / "host1" / "rank1" / RANK_NOTE
    path.parent.mkdir(parents=True)
    path.write_text('{"host": "ho')
    assert others.now() == []


@pytest.mark.parametrize("text", ["", "[]", '{"host": 1}', '{"files": 3, "problems": []}'])
def test_what_is_no_note_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / RANK_NOTE).write_text(text)
    with pytest.raises(OutputError, match="is no note of pipeprof"):
        read_note(str(tmp_path / RANK_NOTE))


def test_ranks_come_first_and_in_order() -> None:
    notes = [Note("host", process, rank, None, "", (), ())
             for process, rank in ((1, None), (2, 1), (3, 0))]  # fmt: skip
    assert [note.name for note in in_order(notes)] == ["rank 0", "rank 1", "process 1"]
