"""The fuzz targets for a few seconds, what they found before, and that they would find anything."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from pipeprof.errors import CorruptData
from pipeprof.formats import WRITTEN, get
from tests.contracts.format_samples import SMALL, encode
from tests.fuzz import run
from tests.fuzz.cage import Outcome, run_caged
from tests.fuzz.run import FOUND, Tally, fuzz, make
from tests.fuzz.targets import TARGETS, Target

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
INPUTS = 40
"""Of each target: `make fuzz` tries as many as it can in ten minutes."""


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_damaged_input_is_read_or_refused(target: Target) -> None:
    tally = Tally()
    fuzz(target, seed=0, tally=tally, inputs=INPUTS)
    assert tally.inputs >= INPUTS
    assert not tally.faults, tally.faults.values()


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.*")), ids=lambda path: path.name)
def test_what_was_found_is_mended(path: Path) -> None:
    [outcome] = run_caged(TARGETS[path.stem].check, [path.read_bytes()])
    assert not outcome.is_fault, outcome


def test_the_same_seed_makes_the_same_inputs_and_another_makes_others() -> None:
    for target in TARGETS.values():
        assert make(target, 1, 7) == make(target, 1, 7)
        assert len({make(target, seed, 7) for seed in range(20)}) > 1


def test_undamaged_seeds_are_read() -> None:
    """So that damage, and not the target, is what is refused."""
    for name in WRITTEN:
        assert run_caged(TARGETS[name].check, [encode(get(name), SMALL)]) == [Outcome("read")]


def refuse(data: bytes) -> None:
    raise CorruptData("damaged")


def mistake(data: bytes) -> None:
    raise KeyError(data)


def crash(data: bytes) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def spin(data: bytes) -> None:
    while True:
        pass


def sleep(data: bytes) -> None:
    time.sleep(3600)


def swell(data: bytes) -> None:
    np.ones(60 * 2**17)


@pytest.mark.parametrize(
    ("check", "kind", "says"),
    [
        (len, "read", ""),
        (refuse, "CorruptData", ""),
        (mistake, "exception", "KeyError: b'1' (test_fuzz.py:"),
        (crash, "crash", "SIGSEGV"),
        (spin, "hang", "of CPU"),
        (sleep, "hang", "more than 1 s"),
        (swell, "memory", "MB more"),
    ],
)
def test_each_way_to_fail_is_caught(
    check: object, kind: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.cage.CPU_S", 0.2 if check is spin else 60)
    monkeypatch.setattr("tests.fuzz.cage.WALL_S", 1 if check is sleep else 60)
    monkeypatch.setattr("tests.fuzz.cage.MEMORY_BYTES", 50 * 2**20)
    [outcome, *_] = run_caged(check, [b"1", b"2"])
    assert outcome.kind == kind
    assert says in outcome.detail
    assert outcome.is_fault == (kind not in ("read", "CorruptData"))


def test_a_fault_is_kept_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FOUND", tmp_path)
    target, tally = Target("csv", lambda rng: b"%d" % rng.randrange(3), mistake), Tally()
    fuzz(target, seed=0, tally=tally, inputs=20)
    assert tally.counts["exception"] >= 20
    assert len(tally.faults) == 3
    paths = [run.keep(target, data) for data in tally.faults]
    assert {path.read_bytes() for path in paths} == {b"0", b"1", b"2"}
    assert {path.stem for path in paths} == {"csv"}
