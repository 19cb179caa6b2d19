"""`pipeprof gather`: one report from the profiles of a job's ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pipeprof.cli.app import run
from pipeprof.cli.run_note import RANK_NOTE, Note
from pipeprof.model import JobPlace, Profile
from tests.analyze.test_job import STEPS, of_rank
from tests.support.env import UNWATCHED
from tests.support.warm import with_torch

WAITS_S = np.array([[0.001] * STEPS, [0.011] * STEPS])
MOMENTS_S = np.arange(STEPS + 1) * 0.021


def profile(
    rank: int,
    job_id: str = "one",
    created: str = "2026-11-26T10:00:00Z",
    waits_s: npt.NDArray[np.float64] = WAITS_S,
    moments_s: npt.NDArray[np.float64] = MOMENTS_S,
) -> Profile:
    made = of_rank(rank, moments_s, waits_s[rank], "a", "decode_s")
    place = JobPlace("Slurm", rank, world_size=2, job_id=job_id)
    environment = replace(made.environment, job=place)
    return replace(made, environment=environment, created=created, name="train.py:7")


def save(folder: Path, *profiles: Profile) -> Path:
    for number, each in enumerate(profiles):
        rank = folder / f"rank{each.environment.rank}"
        rank.mkdir(parents=True, exist_ok=True)
        each.save(rank / f"train.py-7-{number}.json")
    return folder


def gathered(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict]:
    assert run(["gather", str(folder), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_report_fits_a_screen(tmp_path, capsys):
    assert run(["gather", str(save(tmp_path, profile(0), profile(1)))]) == 0
    printed = capsys.readouterr().out
    assert "STARVED" in printed
    assert "Rank 1 is to be cured first" in " ".join(printed.split())
    assert "rank 1 loads like the others" in printed
    assert len(printed.splitlines()) <= 45


def test_a_page_and_markdown_hold_the_same(tmp_path, capsys):
    folder = save(tmp_path / "run", profile(0), profile(1))
    assert run(["gather", str(folder), "--html", str(tmp_path / "job.html")]) == 0
    assert "Rank 1 is to be cured first" in (tmp_path / "job.html").read_text()
    capsys.readouterr()
    assert run(["gather", str(folder), "--markdown"]) == 0
    assert "Rank 1 is to be cured first" in capsys.readouterr().out


def test_a_page_never_replaces_a_profile(tmp_path, capsys):
    folder = save(tmp_path, profile(0), profile(1))
    (file,) = (folder / "rank0").iterdir()
    before = file.read_bytes()
    assert run(["gather", str(folder), "--html", str(file)]) == 2
    assert file.read_bytes() == before
    assert "is the input file" in capsys.readouterr().err


def test_what_cannot_be_read_is_named_and_the_rest_is_used(tmp_path, capsys):
    folder = save(tmp_path, profile(0), profile(1))
    (folder / "rank1" / "half.json").write_text('{"schema": "pipeprof.prof')
    (found,) = gathered(folder, capsys)
    assert [rank["rank"] for rank in found["ranks"]] == [1, 0]
    assert "half.json" in found["notes"][0]


def test_many_profiles_are_read_on_all_cores(tmp_path, capsys):
    """Those of one rank in three load more slowly, and one file is damaged."""
    profiles = [profile(rank % 2) for rank in range(70)]
    for rank, each in enumerate(profiles):
        environment = replace(each.environment, rank=rank)
        save(tmp_path, replace(each, environment=environment))
    (tmp_path / "rank69" / "half.json").write_text('{"schema": "pipeprof.prof')
    (found,) = gathered(tmp_path, capsys)
    assert len(found["ranks"]) == 70
    assert {rank["rank"] % 2 for rank in found["ranks"] if rank["stall_share"] > 0} == {1}
    assert "half.json" in found["notes"][0]


def test_the_newest_of_two_jobs_is_shown_and_the_newest_profile_of_a_rank(tmp_path, capsys):
    later = [profile(rank, "two", "2026-11-26T12:00:00Z") for rank in (0, 1)]
    again = profile(1, "two", "2026-11-26T13:00:00Z")
    (found,) = gathered(save(tmp_path, profile(0), profile(1), *later, again), capsys)
    assert found["created"] == "2026-11-26T13:00:00Z"
    assert "The newest job is shown; the folder also holds one." in found["notes"]
    assert "Older profiles of the same ranks are left out: 1." in found["notes"]


def test_a_rank_that_loads_nothing_is_not_missing(tmp_path, capsys):
    """As with pipeline parallelism, where only some ranks have data."""
    save(tmp_path, profile(0), profile(1))
    for rank, job_id in ((2, "one"), (3, "another")):
        (tmp_path / f"rank{rank}").mkdir()
        note = Note("host", rank, rank, job_id, "", (), ())
        note.write(str(tmp_path / f"rank{rank}" / RANK_NOTE))
    (found,) = gathered(tmp_path, capsys)
    assert (found["world_size"], found["missing"], found["idle"]) == (3, [], [2])
    assert "1 rank loaded nothing, and held nobody up: 2." in found["notes"]


def test_compare_refers_to_it(tmp_path, capsys):
    save(tmp_path, profile(0), profile(1))
    files = sorted(map(str, tmp_path.glob("rank*/*.json")))
    assert run(["compare", *files]) == 0
    assert "pipeprof gather joins them" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("there", ["nothing", "one rank", "no rank"])
def test_a_folder_without_two_ranks_says_how_to_get_them(there, tmp_path, capsys):
    alone = profile(0)
    if there != "nothing":
        rank = 0 if there == "one rank" else None
        environment = replace(alone.environment, rank=rank)
        replace(alone, environment=environment).save(tmp_path / "run.json")
    assert run(["gather", str(tmp_path)]) == 1
    assert "torchrun … -m pipeprof run train.py" in capsys.readouterr().err


def test_what_is_no_folder_is_named(tmp_path, capsys):
    assert run(["gather", str(tmp_path / "none")]) == 2
    assert "none is no folder" in capsys.readouterr().err


SCRIPT = """
import os
import random
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

RANK, KIND = int(os.environ["RANK"]), sys.argv[1]

class Napping(Dataset):
    def __len__(self):
        return 120
    def __getitem__(self, index):
        random.seed(1000 * RANK + index)
        late = KIND == "turns" and random.random() < 0.1
        time.sleep(0.050 if late else 0.025 if KIND == "slow" and RANK == 1 else 0.002)
        return torch.tensor([float(index)])

if __name__ == "__main__":
    dist.init_process_group("gloo")
    for batch in DataLoader(Napping(), num_workers=1, prefetch_factor=1):
        time.sleep(0.030 if KIND == "computes" and RANK == 1 else 0.010)
        dist.all_reduce(batch)
    dist.destroy_process_group()
"""


def trained(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict:
    """Train with two real ranks, and return their job."""
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    run_whole = ["-m", "pipeprof", "run", "--quiet", "--whole", "train.py", kind]
    for done in with_torch().run_ranks(run_whole, 2, folder, UNWATCHED):
        assert done.returncode == 0, done.stderr
    (found,) = gathered(folder / "pipeprof-run", capsys)
    assert found["steps"] > 100
    return found


def gains(found: dict) -> dict[str, float]:
    return {cure["of"] + cure["name"]: cure["gain"] for cure in found["cures"]}


@pytest.mark.slow
@pytest.mark.timed
def test_a_rank_that_loads_slowly_and_what_its_cure_really_gives(tmp_path, capsys):
    """Rank 1 loads a batch in 25 ms for steps of 10, and then in 2 ms as the other."""
    slow = trained("slow", tmp_path / "slow", capsys)
    assert (slow["verdict"], slow["straggling"]) == ("starved", "rank")
    assert (slow["ranks"][0]["rank"], next(iter(slow["blame"]))) == (1, "fetch")
    assert 0.4 < slow["starved_fraction"] < 0.75
    cured = trained("even", tmp_path / "even", capsys)
    assert gains(slow)["rank1"] == pytest.approx(slow["cycle_s"] / cured["cycle_s"] - 1, abs=0.4)


@pytest.mark.slow
@pytest.mark.timed
def test_ranks_that_are_late_now_and_then(tmp_path, capsys):
    found = trained("turns", tmp_path / "run", capsys)
    assert (found["verdict"], found["straggling"]) == ("starved", "turns")
    assert 0.2 < found["starved_fraction"] < 0.6
    assert gains(found)["tails"] > max(gains(found).get(f"rank{rank}", 0) for rank in (0, 1))


@pytest.mark.slow
@pytest.mark.timed
def test_a_rank_that_computes_slowly_is_not_blamed_for_loading(tmp_path, capsys):
    """Rank 1 takes 30 ms for its step, and loads as fast as the other."""
    found = trained("computes", tmp_path / "run", capsys)
    assert found["straggling"] in ("none", "all")
    assert found["starved_fraction"] < 0.15, "the hand-over, on a busy machine"
    assert max(gains(found).get(f"rank{rank}", 0) for rank in (0, 1)) < 0.05


def test_ranks_of_jobs_of_other_sizes_are_noted(tmp_path, capsys):
    one, other = profile(0), profile(1)
    place = replace(other.environment.job, world_size=4)
    folder = save(tmp_path, one, replace(other, environment=replace(other.environment, job=place)))
    (job,) = gathered(folder, capsys)
    assert any("the job has 2 and 4 ranks" in note for note in job["notes"])
