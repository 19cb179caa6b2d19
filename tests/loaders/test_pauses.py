"""Pauses in real training loops, of loaders that starve them. Known truth: a batch takes 19 ms of
one worker that sleeps, a step 3 ms, so 16 of 19 ms are waited for. After each 38 batches the loop
pauses for 0.8 s, in which the worker fills the queue."""

import os
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock, FakeClock
from pipeprof.model import PauseKind, Profile
from tests.loaders.forms import profiled

WAITED = 16 / 19
BATCH_S, STEP_S, PAUSE_S = 19.0, 3.0, 800.0
"""On a clock of the tests, without workers: 19 of 22 are waited for."""
LOOP = """
import sys
from time import sleep
from torch.utils.data import DataLoader
from tests.loaders.test_pauses import Slow, validate

train = DataLoader(Slow(114, 0.019), num_workers=1)
val = DataLoader(Slow(8, 0.0001))
for number, batch in enumerate(train):
    sleep(0.003)
    if number % 38 == 37:
        validate(val)
"""


class Slow(Dataset):
    """Takes the same time for each sample, which is a batch."""

    def __init__(self, count: int, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.count, self.seconds, self.clock = count, seconds, clock

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        self.clock.sleep(self.seconds)
        return index


def validate(loader, step_s: float = 0.1, clock: Clock = SYSTEM_CLOCK) -> None:
    for _ in loader:
        clock.sleep(step_s)


def check(profile: Profile, kind: PauseKind, count: int = 3) -> None:
    assert profile.diagnosis.verdict == "starved"
    assert profile.diagnosis.starved_fraction == pytest.approx(WAITED, abs=0.08)
    assert profile.stages["step"].p50_s == pytest.approx(0.003, rel=0.5)
    assert [each.setting for each in profile.recommendations] == ["num_workers"]
    pauses = profile.pauses
    assert [each.kind for each in pauses.kinds] == [kind]
    assert pauses.count == count
    assert pauses.total_s == pytest.approx(0.8 * count, rel=0.15)
    assert pauses.as_steps.starved_fraction < 0.5


def check_exactly(profile: Profile, kind: PauseKind) -> None:
    assert profile.diagnosis.verdict == "starved"
    assert profile.diagnosis.starved_fraction == pytest.approx(BATCH_S / (BATCH_S + STEP_S))
    assert profile.stages["step"].p50_s == STEP_S
    assert [each.kind for each in profile.pauses.kinds] == [kind]
    assert profile.pauses.count == 3
    assert profile.pauses.as_steps.starved_fraction < 0.5


def test_a_plain_loop_that_sleeps_now_and_then() -> None:
    clock = FakeClock()
    loader = profiled(DataLoader(Slow(114, BATCH_S, clock)), clock)
    for number, _ in enumerate(loader):
        clock.sleep(STEP_S)
        if number % 38 == 37:
            clock.sleep(PAUSE_S)
    profile = loader.profile()
    check_exactly(profile, PauseKind("", "length"))
    assert profile.pauses.total_s == pytest.approx(3 * PAUSE_S, rel=0.001)


@pytest.mark.slow
@pytest.mark.timed
def test_a_plain_loop_that_says_so() -> None:
    loader = pipeprof.wrap(DataLoader(Slow(114, 0.019), num_workers=1))
    for number, _ in enumerate(loader):
        sleep(0.003)
        if number % 38 == 37:
            with pipeprof.pause("checkpoint"):
                sleep(0.8)
    check(loader.profile(), PauseKind("checkpoint", "named"))


@pytest.mark.slow
def test_a_plain_loop_that_validates_with_another_loader() -> None:
    clock = FakeClock()
    train = profiled(DataLoader(Slow(114, BATCH_S, clock)), clock)
    val = profiled(DataLoader(Slow(8, 1.0, clock)), clock)
    for number, _ in enumerate(train):
        clock.sleep(STEP_S)
        if number % 38 == 37:
            validate(val, PAUSE_S / 8, clock)
    profile = train.profile()
    check_exactly(profile, PauseKind("loader", "loader"))
    assert profile.pauses.total_s == pytest.approx(3 * (PAUSE_S + 8.0))
    assert val.profile().pauses is None


@pytest.mark.slow
@pytest.mark.timed
def test_a_script_that_nobody_edited(tmp_path: Path, repo: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP)
    command = [sys.executable, "-m", "pipeprof", "run", "--full", "--out", tmp_path / "out", script]
    environment = {**os.environ, "PYTHONPATH": str(repo)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    train, val = sorted((tmp_path / "out").glob("*.json"), key=_line)
    check(pipeprof.load(train), PauseKind("train.py:8", "loader"))
    assert pipeprof.load(val).pauses is None
    assert "loader train.py:8" in done.stderr


def _line(file: Path) -> int:
    return int(file.stem.rpartition("-")[2])


def test_a_loop_that_is_left_within_a_validation_is_noted_as_far_as_it_came() -> None:
    train = pipeprof.wrap(DataLoader(Slow(40, 0.0)), name="train")
    val = pipeprof.wrap(DataLoader(Slow(5, 0.01)), name="val")
    for number, _ in enumerate(train):
        if number == 20:
            for _ in val:
                break
        if number == 30:
            for _ in val:
                pass
    log = train.profile().batches
    assert [place for place, value in enumerate(log.pause_s) if value] == [20, 30]


def test_the_same_batches_come_in_the_same_order() -> None:
    train, val = DataLoader(Slow(30, 0.0)), DataLoader(Slow(3, 0.0))

    def loop(train, val) -> list[int]:
        seen = []
        for batch in train:
            seen.append(int(batch))
            if len(seen) % 10 == 0:
                with pipeprof.pause("validation"):
                    seen += [100 + int(batch) for batch in val]
        return seen

    assert loop(pipeprof.wrap(train), pipeprof.wrap(val)) == loop(train, val)
