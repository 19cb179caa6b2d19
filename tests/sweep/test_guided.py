"""A sweep over a real loader that tries only the settings that can change the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import pipeprof
from pipeprof.analyze.sweep.noise import noise_of
from pipeprof.analyze.sweep.pairs import in_doubt
from pipeprof.model import SweepResult, SweepSpec
from pipeprof.report.document.build import full_report
from pipeprof.report.terminal.render import print_document
from pipeprof.sweep.guided import MAX_EXHAUSTIVE_SETTINGS, Guide
from pipeprof.sweep.plan import TrialSetting, grid, plan_remaining, plan_sweep
from pipeprof.sweep.runner import run_sweep
from tests.sweep.test_own_loader import HEAD, SLEEPING
from tests.sweep.test_sweep import Listener

WORKERS, PREFETCH = (0, 1, 2, 4, 8), (1, 2)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> SweepSpec:
    """Batches that take 10 ms, for a step of 2: five workers would be enough."""
    path = tmp_path_factory.mktemp("own") / "mine.py"
    path.write_text(HEAD + SLEEPING.replace("return 96", "return 960"))
    text = f"{path}:make"
    return SweepSpec((text,), WORKERS, PREFETCH, (), 0.002, trial_s=0.4, warmup_s=0.1,
                     loader=text, exhaustive=False)  # fmt: skip


@pytest.mark.timed
def test_it_ends_when_no_other_setting_can_change_the_answer(
    spec: SweepSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resumed sweep continues with predictions from the saved profiles."""
    begun = run_sweep(plan_sweep(spec, tmp_path), Listener(stop_after=2))
    assert begun.stopped == "interrupted"
    assert not begun.result.finished
    result = run_sweep(plan_remaining(tmp_path), Listener()).result
    before, after = (
        [(trial.profile, trial.samples_per_s, trial.own_interval) for trial in each.trials[:2]]
        for each in (begun.result, result)
    )
    assert before == after
    tried = [(trial.config.num_workers, trial.config.prefetch_factor) for trial in result.trials]
    assert tried[:2] == [(1, 2), (2, 2)]
    assert len(tried) <= 5 < len(grid(spec, spec.urls))
    best = result.trials[result.advice[0].best_trial]
    assert best.config.num_workers >= 4
    assert result.finished
    noise = noise_of(result.trials, result.noise[spec.urls[0]])
    doubt = in_doubt(result.trials, spec.urls[0], noise.half_width)
    assert doubt is None or result.paired
    assert {(each.num_workers, each.prefetch_factor) for each in result.untried} | set(tried) == {
        (each.num_workers, each.prefetch_factor) for each in grid(spec, spec.urls)
    }
    assert len(tried) > 2
    _intervals_are_of_the_next_run(result)
    for trial in result.trials[2:]:
        assert trial.predicted_samples_per_s == pytest.approx(trial.samples_per_s, rel=0.5)
    assert pipeprof.load(tmp_path / "sweep.json") == result
    print_document(full_report(result))
    said = capsys.readouterr().out
    assert f"{len(result.untried)} settings of {len(grid(spec, spec.urls))} not tried" in said
    assert "were off by" in said
    assert "run to run" in said


def _intervals_are_of_the_next_run(result: SweepResult) -> None:
    """Check that one trial was repeated, and that all intervals include the noise between runs."""
    (noise,) = result.noise.values()
    assert noise.trial < -(-len(result.trials) // 2), "of those that ran some time ago"
    assert noise.first_samples_per_s == result.trials[noise.trial].samples_per_s
    assert noise.samples_per_s > 0
    assert noise.degrees == 3
    for trial in result.trials:
        assert trial.own_interval is not None
        assert trial.interval[0] < trial.own_interval[0] <= trial.samples_per_s
        assert trial.samples_per_s <= trial.own_interval[1] < trial.interval[1]
    for each in result.untried:
        assert each.at_least is not None
        assert each.at_least < each.samples_per_s < each.at_most
    best = result.trials[result.advice[0].best_trial]
    assert result.advice[0].recommendation is not None
    assert result.advice[0].recommendation.interval == best.interval


def test_all_settings_of_a_small_grid_are_tried(spec: SweepSpec, tmp_path: Path) -> None:
    settings = grid(replace(spec, workers=(0, 2, 4)), spec.urls)
    assert len(settings) <= MAX_EXHAUSTIVE_SETTINGS
    guide = Guide(settings, tmp_path, 2)
    choice = guide.next(())
    assert choice is not None
    assert (choice.setting, choice.samples_per_s) == (settings[0], None)
    assert guide.untried((), {}) == ()


def test_each_data_set_and_batch_size_is_searched_on_its_own(tmp_path: Path) -> None:
    spec = SweepSpec(("a", "b"), WORKERS, PREFETCH, (32,), 0.004, exhaustive=False)
    guide = Guide(grid(spec, spec.urls), tmp_path, 2)
    choice = guide.next(())
    assert choice is not None
    assert choice.setting == TrialSetting("a", 32, 1, 2)


def test_where_nothing_can_be_predicted_every_setting_is_tried(
    spec: SweepSpec, tmp_path: Path
) -> None:
    """A loader that gives only a few batches cannot be predicted."""
    path = Path(spec.urls[0].rpartition(":")[0]).with_name("short.py")
    path.write_text(HEAD + SLEEPING.replace("return 96", "return 12").replace("0.0025", "0.0001"))
    text = f"{path}:make"
    few = replace(spec, urls=(text,), loader=text, workers=(0, 1, 2, 3), trial_s=0.05, warmup_s=0.0)
    result = run_sweep(plan_sweep(few, tmp_path), Listener()).result
    tried = {(each.config.num_workers, each.config.prefetch_factor) for each in result.trials}
    assert len(tried) == len(result.trials) == len(grid(few, few.urls)) > MAX_EXHAUSTIVE_SETTINGS
    assert result.untried == ()


def test_an_unfinished_sweep_is_one_that_lacks_trials(spec: SweepSpec, tmp_path: Path) -> None:
    result = plan_sweep(spec, tmp_path).initial
    assert isinstance(result, SweepResult)
    assert not result.finished
