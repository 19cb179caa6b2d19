"""The first screen: the answer, in at most 30 lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from pipeprof.model import Profile, SweepResult
from pipeprof.report.document.build import first_screen
from pipeprof.report.terminal.render import render_terminal
from tests.report.html.pages import PAGES
from tests.samples import RECOMMENDATION, fed_profile, sample_profile
from tests.sweep_samples import sample_conversion, sample_sweep, sample_trial

WHY = "read is worth more than decode, which caused more of the wait. " * 2
URLS = [f"s3://bucket/run-{number:02d}" for number in range(12)]
RESULTS: dict[str, Profile | SweepResult] = {
    **PAGES,
    "many-changes": sample_profile(recommendations=(RECOMMENDATION,) * 5, notes=("a note",) * 9),
    "many-causes": sample_profile(
        blame={f"cause-{number}": 1.0 for number in range(14)},
        diagnosis=replace(sample_profile().diagnosis, worth_note=WHY),
    ),
    "no-trial": sample_sweep(trials=(), advice=(), planned=8),
    "many-data-sets": sample_sweep(
        trials=tuple(sample_trial("parquet", url=url) for url in URLS), advice=()
    ),
}


def shown(result: Profile | SweepResult) -> str:
    return render_terminal(first_screen(result))


@pytest.mark.parametrize("name", RESULTS)
def test_it_fits_a_terminal(name: str) -> None:
    lines = shown(RESULTS[name]).splitlines()
    assert len(lines) <= 30
    assert "pipeprof report" in lines[-1], "where the rest is"


def test_a_profile_says_what_is_wrong_and_what_to_do() -> None:
    text = shown(sample_profile())
    assert text.startswith("STARVED: the accelerator waited for batches 41.2 % of the time")
    places = [
        text.index(part)
        for part in ("decode     10.4 s", "+31 % (25–36)", "num_workers: 2 → 4",
                     "predicted 99,800 samples/s", "    num_workers=4,", "profiler overhead 0.4 %")
    ]  # fmt: skip
    assert places == sorted(places)


def test_it_says_why_a_cause_further_down_is_worth_more() -> None:
    diagnosis = replace(sample_profile().diagnosis, worth_note=WHY)
    lines = shown(sample_profile(diagnosis=diagnosis)).splitlines()
    assert any(line.strip().startswith("read is worth more than decode") for line in lines)


def test_a_healthy_profile_is_short() -> None:
    text = shown(fed_profile())
    assert text.startswith("FED")
    assert len(text.splitlines()) < 15


def test_a_sweep_says_what_to_set() -> None:
    text = shown(sample_sweep())
    assert "parquet is the fastest: 1.67× the samples/s of csv." in text
    assert "parquet: 0 workers, batch 1024 → 1 worker, prefetch 2, batch 1024" in text
    assert "num_workers=1" in text
    assert "num_workers=2" not in text, "that is for the slower data set"


def test_a_conversion_says_what_it_gains() -> None:
    assert "On local: parquet:zstd gives 1.68× the samples/s" in shown(sample_conversion())


def test_an_unfinished_sweep_says_how_to_continue() -> None:
    sweep = sample_sweep()
    assert "--resume" in shown(replace(sweep, trials=sweep.trials[:6], planned=8))


@pytest.mark.parametrize("result", [sample_profile(), sample_sweep()], ids=["profile", "sweep"])
def test_it_is_what_printing_a_result_shows(result: Profile | SweepResult) -> None:
    assert str(result) == shown(result)
    assert max(map(cell_len, str(result).splitlines())) <= 104, "code alone may be wider"
