"""Alternating runs compare two settings, on a simulated machine and on a real one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

import pipeprof
from pipeprof.analyze.sweep.pairs import in_doubt
from pipeprof.analyze.sweep.recommend import choose, is_decided, preferred
from pipeprof.cli.sweep_progress import ProgressLines
from pipeprof.model import PairedRuns, SweepSpec
from pipeprof.report.document.build import full_report
from pipeprof.report.terminal.render import print_document
from pipeprof.sweep.pairs import pair_count, paired_spec, run_pairs
from pipeprof.sweep.plan import TrialSetting, plan_remaining, plan_sweep
from pipeprof.sweep.runner import run_sweep
from tests.analyze.test_choose import SPEC, trial
from tests.sweep.test_own_loader import HEAD
from tests.sweep.test_sweep import Listener

TWO, FOUR = TrialSetting("data", 32, 2, 2), TrialSetting("data", 32, 4, 2)
URL = "data/csv"


class Tired:
    """A machine that gets slower by 1 % with each run, and is slower by chance as well: what each
    setting gives while it is fresh is known."""

    def __init__(self, fresh: dict[TrialSetting, float], seed: int = 0) -> None:
        self.fresh, self.chance, self.ran = fresh, Random(seed), list[TrialSetting]()

    def __call__(self, setting: TrialSetting, number: int = 0, planned: int = 0) -> float:
        self.ran.append(setting)
        return self.fresh[setting] * 0.99 ** len(self.ran) * self.chance.uniform(0.995, 1.005)


def test_pairs_correct_trials_that_ran_at_different_times() -> None:
    machine = Tired({FOUR: 9_500.0, TWO: 10_000.0})
    rates = [machine(setting) for setting in (FOUR, *[TWO] * 7)]
    trials = [trial(4, rates[0], 0.6, "starved"), trial(2, rates[-1], 0.6, "starved")]
    assert in_doubt(trials, URL) == (1, 0), "within 3 %, so the cheaper"
    tired = replace(trials[1], samples_per_s=9_000.0, interval=(8_900.0, 9_100.0))
    (misled,) = choose([trials[0], tired], SPEC)
    assert misled.best_trial == 0
    doubt = in_doubt([trials[0], tired], URL)
    assert doubt == (0, 1)
    found = run_pairs(machine, doubt, (FOUR, TWO), 8, never)
    assert found.difference == "slower"
    assert found.speed == pytest.approx(0.95, rel=0.005)
    (advice,) = choose([trials[0], tired], SPEC, {URL: found})
    assert advice.best_trial == 1


def test_equal_settings_are_found_equal_and_the_interval_holds_the_truth() -> None:
    held = 0
    for seed in range(200):
        machine = Tired({FOUR: 10_000.0, TWO: 10_000.0}, seed)
        found = run_pairs(machine, (0, 1), (FOUR, TWO), 4, never)
        assert found.difference == "none"
        held += found.speed_interval[0] <= 1 <= found.speed_interval[1]
    assert held >= 185, "95 % of 200, less four standard deviations and some"


def test_each_setting_is_first_equally_often() -> None:
    machine = Tired({FOUR: 1.0, TWO: 1.0})
    run_pairs(machine, (0, 1), (FOUR, TWO), 4, never)
    a, b = FOUR, TWO
    assert machine.ran == [a, b, b, a, b, a, a, b]


@pytest.mark.parametrize(
    ("faster_by", "differ_by", "right_of", "pairs_of"),
    [(0.0, 0.03, (0.95, 1.0), (4, 8)), (0.1, 0.03, (0.99, 1.0), (4, 5)),
     (0.1, 0.15, (0.85, 1.0), (6, 10)), (0.02, 0.15, (0.5, 1.0), (8, 12))],
    ids=["equal", "faster", "faster, noisy", "nearly equal, noisy"],
)  # fmt: skip
def test_pairs_end_once_they_have_decided(
    faster_by: float, differ_by: float, right_of: tuple[float, float], pairs_of: tuple[int, int]
) -> None:
    """Setting 1 is the cheaper. Where the other is faster by less than 3 %, it is right as well."""
    right, pairs = 0, 0
    for seed in range(200):
        chance = Random(seed)
        rates = {FOUR: 100.0 * (1 + faster_by), TWO: 100.0}
        found = run_pairs(
            lambda setting, *_, rates=rates, chance=chance: (
                rates[setting] * chance.lognormvariate(0, differ_by / 2**0.5)
            ),
            (0, 1), (FOUR, TWO), 12, partial(is_decided, cheaper=1),
        )  # fmt: skip
        right += preferred(found, cheaper=1) == (0 if faster_by >= 0.03 else 1)
        pairs += len(found.samples_per_s)
        assert len(found.samples_per_s) % 2 == 0
    assert right_of[0] <= right / 200 <= right_of[1]
    assert pairs_of[0] <= pairs / 200 <= pairs_of[1]


def test_pairs_take_no_longer_than_the_trials() -> None:
    spec = replace(SPEC, trial_s=4.0, warmup_s=1.0)
    short = paired_spec(spec)
    for trials in range(2, 40):
        pairs = pair_count(spec, trials)
        assert 4 <= pairs <= 12
        assert pairs % 2 == 0
        seconds = 2 * pairs * (short.trial_s + short.warmup_s)
        assert seconds <= trials * (spec.trial_s + spec.warmup_s)
    assert pair_count(spec, 1) == 0, "too few to tell anything"
    script = replace(spec, script="train.py")
    assert paired_spec(script) == script, "as long as it takes"
    assert [pair_count(script, trials) for trials in (7, 8, 100)] == [0, 4, 12]


def never(found: PairedRuns) -> bool:
    return False


ONE_AT_A_TIME = """
import fcntl, time
class Locked:
    def __len__(self):
        return 960
    def __getitem__(self, index):
        with open(__file__) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(0.003)
        return index
def make(num_workers, prefetch_factor=None):
    return DataLoader(Locked(), 4, num_workers=num_workers, prefetch_factor=prefetch_factor)
"""


class Impatient(Listener):
    def pairing(self, setting: TrialSetting, number: int, planned: int) -> None:
        if number == 1:
            raise KeyboardInterrupt


@pytest.mark.timed
def test_a_real_sweep_ends_with_alternating_runs_of_its_two_best_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Workers wait for a lock, so that any number of them makes a batch in 12 ms, for a step of 10.
    It is interrupted among the pairs, and begins them anew."""
    (tmp_path / "mine.py").write_text(HEAD + ONE_AT_A_TIME)
    text = f"{tmp_path / 'mine.py'}:make"
    spec = SweepSpec(
        (text,), (1, 2, 3, 4), (2,), (), 0.010, trial_s=0.2, warmup_s=0.05, loader=text
    )
    folder = tmp_path / "out"
    outcome = run_sweep(plan_sweep(spec, folder), Impatient())
    assert (outcome.stopped, len(outcome.result.trials)) == ("interrupted", 4)
    assert outcome.result.paired == {}
    listener = Listener()
    result = run_sweep(plan_remaining(folder), listener).result
    assert result.trials == outcome.result.trials
    assert result.noise == outcome.result.noise != {}, "not repeated again"
    pairs = result.paired[text]
    count = len(pairs.samples_per_s)
    assert count in (4, 6, 8)
    assert listener.paired == (2 * count - 1, 16)
    assert pairs.speed == pytest.approx(1.0, abs=0.3)
    best = result.advice[0].best_trial
    assert best in (pairs.trial, pairs.against)
    assert pipeprof.load(folder / "sweep.json") == result
    print_document(full_report(result))
    told = " ".join(capsys.readouterr().out.split())
    assert f"in {count} pairs of short runs" in told
    if abs(pairs.speed - 1) < 0.03:
        assert best == min(pairs.trial, pairs.against), "the cheaper"
        assert "no difference can be shown, so the cheaper setting is recommended" in told


def test_the_progress_tells_copies_and_readers_apart(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines()
    one = trial(2, 100.0, 0.5, "starved")
    for url, reader in (("data/csv", None), ("pandas::data/csv", "pandas"), ("s/csv-gzip", None)):
        lines.finished(replace(one, url=url, reader=reader))
    names = [line.split("2 workers")[0].split(maxsplit=1)[1].strip()
             for line in capsys.readouterr().err.splitlines()]  # fmt: skip
    assert names == ["csv", "csv by pandas", "csv-gzip"]


def test_the_progress_shows_that_pairs_run(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines()
    for number in range(3):
        lines.pairing(FOUR, number, 8)
    said = capsys.readouterr().err
    assert said.splitlines() == ["  repeating the best two settings, alternating"]
