"""A sweep is planned as one object, of which credentials are never saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeprof.errors import UsageError
from pipeprof.model import ConversionSpec, Copy, SweepResult, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.sweep.plan import SweepPlan, TrialSetting, plan_remaining, plan_sweep
from tests.sweep_samples import sample_sweep

SECRET = "ftp://user:hunter2@host/tmp/"


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.csv").write_text("id\n1\n2\n")
    return str(tmp_path / "data")


def test_it_is_saved_before_the_first_trial_without_secrets(data: str, tmp_path: Path) -> None:
    spec = SweepSpec((data,), (0, 1), (2,), (64,), 0.001, s3_client="s3fs", with_options=True)
    plan = plan_sweep(spec, tmp_path / "out", (data,), {"key": "hunter2"})
    assert plan.storage_options == {"key": "hunter2", "s3_client": "s3fs"}
    assert plan.settings() == (TrialSetting(data, 64, 0, None), TrialSetting(data, 64, 1, 2))
    assert plan.initial.planned == 2
    saved = (tmp_path / "out/sweep.json").read_text()
    assert "hunter2" not in saved + repr(plan)
    assert json.loads(saved)["trials"] == []


def test_remaining_trials_are_planned_from_the_saved_sweep_and_the_arguments(
    data: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = plan_sweep(SweepSpec((data,), (0,), (2,), (64,), 0.001, s3_client="s3fs"), out)
    assert plan_remaining(out, (data,), s3_client="s3fs") == first
    with pytest.raises(UsageError, match="begun with --s3-client s3fs; use the same"):
        plan_remaining(out, s3_client="obstore")


def test_the_url_of_a_copy_has_the_credentials_of_its_storage() -> None:
    sweep = sample_sweep()
    asked = ConversionSpec(("csv",), ("local", redact(SECRET)), 1)
    begun = SweepResult(
        sweep.created,
        SweepSpec(("data",), (0,), (2,), (1,), 0.0, conversion=asked),
        sweep.environment,
    )
    plan = SweepPlan(begun, Path("out"), ("data",), ("local", SECRET))
    here = Copy("out-data/csv-none", "csv", "local", "csv", "none")
    assert plan.copy_url(here) == here.url
    there = Copy(f"{redact(SECRET)}pipeprof-out/csv-none", "csv", redact(SECRET), "csv", "none")
    assert plan.copy_url(there) == f"{SECRET}pipeprof-out/csv-none"
