"""On a machine without shared memory, /dev/shm, a temporary folder or /proc, training continues."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import pipeprof
from tests.loaders.forms import Marked
from tests.support.env import UNWATCHED
from tests.support.leaks import descriptors
from tests.support.requirements import missing


def refuse(*_: object) -> int:
    raise OSError(38, "Function not implemented")


@pytest.mark.parametrize("lack", ["memfd_create", "memfd_create fails"])
def test_without_shared_memory_training_goes_on_and_the_profile_says_so(lack, monkeypatch):
    if lack == "memfd_create":
        monkeypatch.delattr(os, "memfd_create")
    else:
        monkeypatch.setattr(os, "memfd_create", refuse)
    loader = pipeprof.wrap(DataLoader(Marked(), 4, num_workers=1))
    gc.collect()
    before = descriptors()
    assert len(list(loader)) == 10
    profile = loader.profile()
    assert "no shared memory for the workers' records" in profile.missing["fetch"]
    assert profile.stages["wait"].count == profile.measured_batches
    gc.collect()
    assert not descriptors() - before


POOR = """
import json, sys
from torch.utils.data import DataLoader
import pipeprof
from tests.loaders.forms import Marked

def attempt(loader):
    try:
        return "batches", str(len(list(loader)))
    except Exception as error:
        return type(error).__name__, str(error)

forms = [{}, {"num_workers": 1}]
forms += [{"num_workers": 1, "multiprocessing_context": method} for method in sys.argv[1:]]
results, seen = [], []
for form in forms:
    plain = DataLoader(Marked(pause_s=0.005), 2, **form)
    wrapped = pipeprof.wrap(plain)
    results.append([attempt(wrapped), attempt(plain)])
    if results[-1][0][0] == "batches":
        profile = wrapped.profile()
        seen.append([sorted(profile.stages), sorted(profile.resources), profile.lost_records])
print(json.dumps({"results": results, "seen": seen}))
"""


def on_a_poor_machine(command: str, repo: Path, *methods: str) -> dict[str, Any]:
    """Run `POOR` in a mount namespace of its own, after ``command``."""
    script = [sys.executable, "-c", POOR, *methods]
    try:
        subprocess.run(["unshare", "-rm", "sh", "-c", command], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        missing("unshare -rm, with which to take away what a poor machine lacks, is refused")
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f'{command} && exec "$@"', "sh", *script],
        cwd=repo, capture_output=True, text=True, timeout=100, env=UNWATCHED,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert all(with_us == without_us for with_us, without_us in answer["results"])
    return answer


def test_without_dev_shm_it_is_as_without_us(repo):
    answer = on_a_poor_machine("mount -t tmpfs -o ro none /dev/shm", repo)
    inline, workers = (with_us for with_us, _ in answer["results"])
    assert inline == ["batches", "20"]
    assert workers[0] == "OSError", "torch itself cannot do without"


def test_a_temporary_folder_that_cannot_be_written_changes_nothing(repo, tmp_path):
    answer = on_a_poor_machine(
        f"mount -t tmpfs -o ro none {tmp_path} && export TMPDIR={tmp_path}", repo
    )
    assert [with_us for with_us, _ in answer["results"]] == [["batches", "20"]] * 2
    for stages, _, lost in answer["seen"]:
        assert {"fetch", "collate", "wait", "step"} <= set(stages)
        assert lost == 0


def test_without_proc_what_it_tells_is_unknown_and_not_zero(repo):
    answer = on_a_poor_machine("mount -t tmpfs none /proc", repo, "spawn")
    assert [with_us for with_us, _ in answer["results"]] == [["batches", "20"]] * 3
    for stages, resources, lost in answer["seen"][:2]:
        assert {"fetch", "collate", "wait", "step"} <= set(stages)
        assert "run-queue" not in resources
        assert "cpu" in resources
        assert lost == 0
    _, _, lost = answer["seen"][2]
    assert 16 <= lost <= 20, "a spawned worker finds the ring through /proc"
