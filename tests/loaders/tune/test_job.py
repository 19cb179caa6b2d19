"""Ranks of a real job take one setting, decided by the slowest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.env import UNWATCHED
from tests.support.warm import with_torch

pytestmark = pytest.mark.timed

_SCRIPT = Path(__file__).parent / "train_ranks.py"
_ROOT = Path(__file__).parents[3]


def trained(folder: Path, *options: str, ranks: int = 2) -> list[dict[str, Any]]:
    """Return what each rank found."""
    words = [str(_SCRIPT), str(folder), *options]
    for done in with_torch().run_ranks(words, ranks, _ROOT, UNWATCHED):
        assert done.returncode == 0, done.stderr[-2000:]
    return what_each_found(folder, ranks)


def what_each_found(folder: Path, ranks: int) -> list[dict[str, Any]]:
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
    for each in found:
        assert each["samples"] == each["expected"]
    return found


def test_all_ranks_take_the_setting_that_the_slowest_needs(tmp_path: Path) -> None:
    found = trained(tmp_path, "--epochs", "8", ranks=3)
    # where cores are busy, settings that are as fast may still be compared at the end
    states = {each["state"] for each in found}
    assert states in ({"fed"}, {"best"}, {"searching"}), found[0]["text"]
    assert found[0]["chosen"] == found[1]["chosen"] == found[2]["chosen"]
    assert found[0]["tried"] == found[1]["tried"] == found[2]["tried"]
    assert found[0]["chosen"]["num_workers"] >= 3
    assert "decided by the slowest of 3 ranks" in found[2]["text"]


def test_without_a_process_group_torchrun_s_store_is_used(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [str(_SCRIPT), str(tmp_path), "--no-group"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=_ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    found = what_each_found(tmp_path, 2)
    assert found[0]["tried"] == found[1]["tried"] != []


def test_ranks_with_other_loaders_are_left_as_they_are(tmp_path: Path) -> None:
    for each in trained(tmp_path, "--other-loader", "--epochs", "1"):
        assert (each["state"], each["tried"]) == ("off", [])
        assert "ranks 0 and 1 have other loaders" in each["text"]


def test_a_rank_that_is_not_tuned_ends_the_search(tmp_path: Path) -> None:
    found, _ = trained(tmp_path, "--absent", "--epochs", "1")
    assert (found["state"], found["chosen"]) == ("failed", found["own"])
    assert "rank 1 did not answer for 3 s" in found["text"]
