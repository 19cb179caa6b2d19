"""`pipeprof compare JOB_A JOB_B`: two folders, each with the ranks of a job."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from pipeprof.cli.app import run
from pipeprof.model import JobPlace, Profile
from tests.cli.test_gather import save
from tests.comparisons import paced


def of_rank(rank: int, wait_s: float, cycle_s: float, job_id: str) -> Profile:
    """A rank that waits so long for each batch, in a job whose steps last ``cycle_s``."""
    cycles_s = cycle_s * np.random.default_rng(1).uniform(0.98, 1.02, 400)
    made = paced(cycles_s, name="train.py:7")
    delivered = tuple(asked + wait_s for asked in made.batches.asked_s)
    place = JobPlace("Slurm", rank, world_size=2, job_id=job_id)
    return replace(
        made,
        batches=replace(made.batches, delivered_s=delivered),
        environment=replace(made.environment, job=place, rank=rank),
    )


@pytest.fixture
def jobs(tmp_path):
    """Rank 1 of the first job waits 11 ms for each batch, and nobody in the second one."""
    before = [of_rank(0, 0.001, 0.021, "one"), of_rank(1, 0.011, 0.021, "one")]
    after = [of_rank(rank, 0.0005, 0.0115, "two") for rank in (0, 1)]
    return [str(save(tmp_path / "before", *before)), str(save(tmp_path / "after", *after))]


def test_two_jobs_are_compared_by_their_pace_and_by_who_holds_them_up(jobs, capsys):
    assert run(["compare", *jobs]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "All ranks together" in shown
    assert "rank 1 decode" in shown
    assert "nobody" in shown


def test_json_has_the_figures_of_both(jobs, capsys):
    assert run(["compare", *jobs, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"][0]["speed"]["ratio"] == pytest.approx(21 / 11.5, rel=0.02)
    (pair,) = found["jobs"]
    assert (pair["before"]["slowed_by"], pair["before"]["ranks"]) == ("rank 1", 2)
    assert pair["before"]["starved_fraction"] == pytest.approx(11 / 21, abs=0.02)
    assert pair["after"]["samples_per_s"] == pytest.approx(
        pair["before"]["samples_per_s"] * 21 / 11.5, rel=0.02
    )


def test_a_slower_job_fails_ci(jobs, capsys):
    assert run(["compare", *jobs[::-1], "--fail-if-slower", "10%"]) == 3
    assert "slower by more than the allowed 10.0 %" in capsys.readouterr().err


def test_what_cannot_be_compared_is_said(jobs, tmp_path, capsys):
    file = next((tmp_path / "after").rglob("*.json"))
    assert run(["compare", jobs[0], str(file)]) == 2
    assert "is the folder of a job, and" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run(["compare", jobs[0], str(tmp_path / "empty")]) == 1
    assert "does not hold the profiles of two ranks of one job" in capsys.readouterr().err
