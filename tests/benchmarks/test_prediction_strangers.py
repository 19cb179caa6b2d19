"""The benchmark of strangers, on runs that are simulated: what it says of them is known."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prediction_strangers import asked_of, in_pairs, kept, met, print_summary
from benchmarks.random_loader_runs import keep, load
from benchmarks.random_loaders import Cost, LoaderSpec, draw
from benchmarks.stranger_sweeps import Stranger, Sweep
from pipeprof.analyze.predict.workload import Machine, Setting
from pipeprof.model import BatchLog, LoaderConfig
from tests.analyze.pipelines import workers_run
from tests.analyze.test_predict import batches, run_of

CORES = 2.0
EXAMPLE = workers_run()
ONE, FOUR = Setting(1, 2), Setting(4, 2)
GRID = (Setting(0, 2), Setting(1, 1), ONE, Setting(2, 1), Setting(2, 2), Setting(4, 1), FOUR,
        Setting(6, 1), Setting(6, 2))  # fmt: skip


def bout(seed, latency_s=0.03):
    demands = batches(seed, count=150, send_s=0.00003, receive_s=0.00004, latency_s=latency_s)
    return {setting: recording(run_of(demands, setting, Machine(CORES))) for setting in GRID}


def recording(run):
    log = BatchLog(**{field.name: tuple(getattr(run.columns, field.name))
                      for field in fields(BatchLog)})  # fmt: skip
    config = LoaderConfig(run.setting.num_workers, run.setting.prefetch_factor, 8)
    return replace(EXAMPLE, batches=log, config=config)


@pytest.fixture(scope="module")
def waiting():
    """Workers wait for each batch, so that more of them bring more."""
    return Stranger(draw(1), (bout(0), bout(1)), {})


@pytest.fixture(scope="module")
def sweep(waiting):
    return Sweep.of(waiting, CORES)


@pytest.fixture(scope="module")
def cells(sweep):
    return sweep.cells()


def test_a_sweep_leaves_settings_untried_and_says_what_they_give(waiting, sweep, cells):
    assert len(sweep.tried) <= len(GRID) / 2
    assert {run.setting for run in sweep.tried} | {told.setting for told in sweep.outlooks} == set(
        GRID
    )
    assert {cell.setting for cell in cells} <= {each.setting for each in sweep.outlooks}
    assert np.median([abs(cell.error) for cell in cells]) < 0.06
    for cell in cells:
        assert cell.rates == tuple(waiting.rates(cell.setting))


def test_settings_that_are_fed_are_not_counted(waiting):
    fed = Stranger(waiting.spec, (bout(0, 0.0001), bout(1, 0.0001)), {})
    assert Sweep.of(fed, CORES).cells() == []


def test_a_bound_is_held_against_each_run(cells):
    cell = replace(
        cells[0], batches_per_s=110.0, interval=(95.0, 105.0), most=101.0,
        rates=(90.0, 100.0, 110.0),
    )  # fmt: skip
    assert cell.error == pytest.approx(0.1)
    assert (cell.held, cell.most_held) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_the_noise_is_what_runs_of_a_setting_differ_by(waiting):
    same = Stranger(waiting.spec, waiting.bouts[:1] * 2, {})
    assert same.spread == 0
    assert 0 < waiting.spread < 0.1
    apart = Stranger(waiting.spec, (bout(0, 0.03), bout(0, 0.04)), {})
    assert apart.spread > 0.1


def test_the_cheapest_of_those_as_fast_is_chosen(waiting):
    runs = {setting: each[0] for setting, each in waiting.runs.items()}
    sweep = Sweep(waiting, tuple(runs.values()), ())
    chosen, best = runs[sweep.chosen], max(runs.values(), key=lambda run: run.batches_per_s)
    assert chosen.batches_per_s >= 0.97 * best.batches_per_s
    cheaper = [run for run in runs.values() if run.setting.num_workers < sweep.chosen.num_workers]
    assert all(run.batches_per_s < 0.97 * best.batches_per_s for run in cheaper)


def test_a_choice_is_behind_by_what_the_pairs_tell(waiting):
    one = Sweep(waiting, (waiting.runs[ONE][0],), ())
    assert one.chosen == ONE
    behind = one.behind()
    assert (behind.share > 1, behind.pairs) == (True, 0), "as the bouts tell"
    pairs = {(ONE, waiting.best): ((10.0, 10.5), (10.0, 10.2), (10.0, 10.8))}
    behind = replace(one, stranger=replace(waiting, judging=pairs)).behind()
    assert behind.share == pytest.approx(0.05, abs=0.001)
    assert behind.interval[0] < 0.05 < behind.interval[1]
    assert behind.pairs == 3
    best = Sweep(waiting, (waiting.runs[waiting.best][0],), ()).behind()
    assert (best.share, best.pairs) == (0.0, None), "there is nothing to be told"


def test_pairs_run_until_they_are_exact_or_too_many(waiting, monkeypatch):
    one = Sweep(waiting, (waiting.runs[ONE][0],), ())
    monkeypatch.setattr("benchmarks.prediction_strangers.run", lambda spec, *_: spec)
    monkeypatch.setattr(Sweep, "of", lambda stranger, cores: replace(one, stranger=stranger))

    def pairs(rate):
        monkeypatch.setattr("benchmarks.prediction_strangers.rate", rate)
        found = in_pairs(waiting, None, asked_of(["--pairs", "12"]), CORES)
        return len(found.judging[(ONE, waiting.best)])

    assert pairs(lambda spec: float(spec.num_workers)) == 4, "all are the same"
    chance = np.random.default_rng(0)
    assert pairs(lambda spec: chance.uniform(1, 2)) == 12


def test_a_run_of_the_setting_itself_is_the_control(cells):
    errors = replace(cells[0], rates=(100.0, 110.0)).errors_of_runs
    assert errors == [pytest.approx(-1 / 11), pytest.approx(0.1)]


def test_where_two_settings_may_be_as_good_pairs_of_runs_decide(waiting):
    several = tuple(waiting.runs[setting][0] for setting in GRID)
    sweep = Sweep(waiting, several, ())
    first, rival = sweep.doubt
    assert sweep.chosen == first
    assert sweep.pairs == 12

    def chosen(rates):
        pairs = {sweep.doubt: tuple(rates)}
        return replace(sweep, stranger=replace(waiting, pairs=pairs)).chosen

    assert chosen([(10.0, 12.0), (10.0, 12.1), (10.0, 12.2)]) == rival
    assert chosen([(12.0, 10.0), (12.1, 10.0), (12.2, 10.0)]) == first
    cheaper = min((first, rival), key=lambda each: (each.num_workers, each.prefetch_factor))
    assert chosen([(10.0, 10.1), (10.0, 9.9), (10.0, 10.1)]) == cheaper
    alone = Sweep(waiting, several[:1], ())
    assert (alone.doubt, alone.pairs) == (None, 0)


def test_what_a_repeated_trial_differs_by_widens_the_intervals(waiting):
    first, slower = waiting.bouts[0], bout(1, latency_s=0.045)
    alike, apart = (
        Sweep.of(replace(waiting, bouts=(first, again)), CORES) for again in (first, slower)
    )
    assert [each.setting for each in alike.outlooks] == [each.setting for each in apart.outlooks]
    for narrow, wide in zip(alike.outlooks, apart.outlooks, strict=True):
        assert narrow.batches_per_s == wide.batches_per_s
        assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]


def test_the_summary_says_which_bars_are_met(waiting, sweep, cells, capsys):
    print_summary([sweep], cells)
    said = capsys.readouterr().out
    assert "chosen within 3 % of the best" in said
    assert "had the setting been run instead: median" in said
    bad = Sweep(waiting, (waiting.runs[ONE][0],), ())
    wrong = [replace(each, batches_per_s=2 * each.batches_per_s, interval=(0.0, 0.1), most=0.1)
             for each in cells]  # fmt: skip
    print_summary([bad], wrong)
    said = capsys.readouterr().out
    for missed in ("3 %", "90 %", "88 to 97 %", "93 %", "85 %"):
        assert f"[bar {missed}: MISSED]" in said


def test_strangers_are_kept_in_a_file(waiting, tmp_path: Path):
    keep(waiting, tmp_path / "kept")
    (found,) = load([tmp_path / "kept"])
    assert found.spec == waiting.spec
    assert found.rates(FOUR) == waiting.rates(FOUR)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_a_stranger_is_run_in_each_setting(monkeypatch, tmp_path: Path):
    grid = (Setting(0, 2), Setting(1, 2), Setting(2, 2))
    monkeypatch.setattr("benchmarks.prediction_strangers.GRID", grid)
    short = LoaderSpec(1, (Cost("sleep", "read", 1, 0.002),), annotated=True)
    monkeypatch.setattr("benchmarks.prediction_strangers.draw", lambda *_: short)
    asked = ["--strangers", "1", "--seconds", "0.01", "--bouts", "2", "--pairs", "2"]
    monkeypatch.setattr("benchmarks.prediction_strangers.lab_kinds", tuple)
    options = asked_of([*asked, "--keep", str(tmp_path / "kept")])
    (stranger,) = islice(met(options, CORES), 1)
    assert [set(each) for each in stranger.bouts] == [set(grid)] * 2
    for setting in grid:
        assert all(each > 0 for each in stranger.rates(setting))
    again = asked_of(["--kept", str(tmp_path / "kept"), "--keep", str(tmp_path / "more")])
    (found,) = kept(again, CORES)
    assert found.rates(grid[1]) == stranger.rates(grid[1])
    assert Sweep.of(found, CORES).behind().pairs != 0
    assert (tmp_path / "more").exists()
