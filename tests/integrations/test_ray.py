"""Ray Train with two workers, each of which is profiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.environments import plain, train, train_under_run
from tests.integrations.test_frameworks import WHOLE, pauses

SCRIPT = "ray_train.py"
pytestmark = [pytest.mark.integrations, pytest.mark.timeout(600)]


def is_whole(profile: dict[str, Any], batches: int, wrapped: bool = False) -> bool:
    """Ranks wait for one another in each step, so the script's clock is no measure of a loader."""
    assert profile["stages"].keys() >= WHOLE
    assert sum(epoch["batches"] for epoch in profile["epochs"]) == batches
    assert profile["lost_records"] == 0
    if not wrapped:
        assert pauses(profile) == {"report", "checkpoint"}
    codes = {each["code"]: each["evidence"] for each in profile["findings"]}
    assert "prefetch_factor=4" in codes["options-lost"], "Ray Train keeps only what it knows"
    return True


def test_a_wrapped_loader() -> None:
    answer = train("main", SCRIPT, "wrap")
    assert answer.losses == plain("main", SCRIPT).losses
    assert is_whole(answer.profiles["train"], len(answer.losses), wrapped=True)


def test_a_callback_brings_together_the_profiles_of_all_workers(tmp_path: Path) -> None:
    answer = train("main", SCRIPT, "callback", str(tmp_path))
    assert answer.losses == plain("main", SCRIPT).losses
    for worker in range(2):
        (file,) = (tmp_path / f"worker{worker}").iterdir()
        assert is_whole(json.loads(file.read_text()), len(answer.losses))


def test_a_driver_that_is_not_edited(tmp_path: Path) -> None:
    answer = train_under_run("main", SCRIPT, tmp_path)
    assert answer.losses == plain("main", SCRIPT).losses
    assert set(answer.profiles) == {"worker0/loader-1.json", "worker1/loader-1.json"}
    assert all(is_whole(each, len(answer.losses)) for each in answer.profiles.values())
    assert "iterated no DataLoader" not in answer.stderr


@pytest.mark.parametrize("part", ["production_wait", "collate"])
def test_an_iterator_of_ray_data_says_by_its_own_figures_what_it_waits_for(part: str) -> None:
    answer, bare = train("main", "ray_data.py", "wrap", part), plain("main", "ray_data.py", part)
    assert answer.losses == bare.losses
    profile = answer.profiles["train"]
    waited = {each["name"]: each["waited_s"] for each in profile["pipeline"]}
    assert max(waited, key=waited.__getitem__) == part
    assert {each["measured_by"] for each in profile["pipeline"]} == {"library"}
    assert profile["diagnosis"]["bottleneck"] == "pipeline"
    assert f"for its stage {part}, by the library's figures" in profile["diagnosis"]["headline"]
