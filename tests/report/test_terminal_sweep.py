"""The content of the terminal report of a sweep and of a conversion."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from pipeprof.model import CachePass, LocalCache, RunNoise, SweepResult, Untried
from tests.contracts.report_samples import unwrapped
from tests.report.full import full_text, section
from tests.samples import RECOMMENDATION
from tests.sweep_samples import SWEEP_TRIALS, sample_conversion, sample_sweep, sample_trial


def trial_lines(sweep: SweepResult) -> list[str]:
    verdict = re.compile(r"  (csv|parquet) .* (starved|fed)\b")
    return [line for line in full_text(sweep).splitlines() if verdict.match(line)]


def test_a_sweep_marks_the_best_trial_of_each_data_set() -> None:
    lines = trial_lines(sample_sweep())
    assert len(lines) == len(SWEEP_TRIALS)
    assert [number for number, line in enumerate(lines) if "chosen" in line] == [2, 5]


def test_a_sweep_gives_each_data_set_its_verdict_first() -> None:
    first, second = re.findall(r"^(\S+) +(STARVED|FED) ", full_text(sample_sweep()), re.MULTILINE)
    assert first == ("csv", "STARVED")
    assert second == ("parquet", "FED")


def test_a_setting_that_is_already_best_is_kept() -> None:
    sweep = sample_sweep()
    keep = [
        replace(sweep.advice[0], recommendation=replace(RECOMMENDATION, proposed="2")),
        replace(sweep.advice[1], recommendation=None),
    ]
    report = full_text(replace(sweep, advice=tuple(keep)))
    kept = section(report, "Recommendation")
    assert re.search(r"csv: keep 2\n +why ", kept)
    assert "    gain" not in kept
    assert "parquet: keep 1 worker, prefetch 2, batch 1024" in report


@pytest.mark.parametrize(
    ("csv", "parquet", "says"),
    [
        ((60_000, 0.4), (100_000, 0.01), "parquet is the fastest: 1.67× the samples/s of csv."),
        (
            (60_000, 0.4),
            (60_500, 0.4),
            "parquet and csv do not clearly differ",
        ),
        ((100_000, 0.01), (100_100, 0.01), "parquet reads the least, 42 B a sample."),
    ],
)
def test_data_sets_are_compared_as_far_as_the_figures_allow(
    csv: tuple[float, float], parquet: tuple[float, float], says: str
) -> None:
    trials = (
        sample_trial("csv", samples_per_s=csv[0], starved=csv[1]),
        sample_trial("parquet", samples_per_s=parquet[0], starved=parquet[1]),
    )
    report = full_text(sample_sweep(trials=trials, advice=(), planned=2))
    assert says in section(report, "Best trial of each data set")


def test_one_data_set_is_not_compared() -> None:
    report = full_text(sample_sweep(trials=SWEEP_TRIALS[:4], advice=sample_sweep().advice[:1]))
    assert "Best trial of each data set" not in report


def test_a_sweep_shows_its_options() -> None:
    spec = replace(sample_sweep().spec, transform="decode.py:decode", columns=("a", "b"))
    part = section(full_text(sample_sweep(spec=spec, notes=("one retry",))), "Confidence")
    for words in ("decode.py:decode", "a, b", "one retry", "each of 5.00 s or more"):
        assert words in part


def test_a_conversion_is_shown_as_multiples_of_the_data_as_it_is() -> None:
    part = section(full_text(sample_conversion()), "What would I gain by converting?")
    rows = {line.split("  ")[1].strip(): line.split() for line in part.splitlines() if "×" in line}
    assert rows["csv as it is"][-6:-2] == ["60,235", "1.00×", "1.00×", "1.00×"]
    assert rows["the same, repeated"][-4:-2] == ["59,800", "0.99×"]
    assert rows["parquet:zstd on local"][4:8] == ["1.68×", "1.63–1.73", "0.22×", "0.30×"]
    words = unwrapped(part)
    assert "On s3://training-scratch/tmp: parquet:zstd gives 1.06× the samples/s" in words
    assert "tfrecord on s3://training-scratch/tmp was not tried: column 'price'" in words
    assert "17.3 % of the data" in words


def test_the_cost_of_a_sample_marks_unknown_figures() -> None:
    part = section(full_text(sample_conversion()), "Cost of a sample")
    [remote] = [line.split() for line in part.splitlines() if "parquet:zstd on s3" in line]
    assert remote[3:] == [
        "42",
        "B",
        "42",
        "B",
        "unknown",
        "12.4",
        "µs",
        "6.20",
        "µs",
        "8",
        "14.3",
        "MB/s",
    ]


def test_recommendations_leave_out_the_copies_of_a_conversion() -> None:
    report = full_text(sample_conversion())
    part = section(report, "Recommendation")
    assert "csv: keep 2 workers" in part
    assert "out-data" not in part
    kept = replace(sample_conversion().conversion, kept=True)
    assert "Kept: /results/out-data/parquet-zstd" in full_text(sample_conversion(conversion=kept))


def test_a_conversion_with_no_trial_yet_says_so() -> None:
    early = replace(sample_conversion().conversion, baseline=None, control=None, gains=())
    report = full_text(sample_conversion(conversion=early, trials=(), advice=()))
    assert "the data as it is has not been tried yet" in unwrapped(report)


def test_noise_beyond_measure_is_shown() -> None:
    noise = {"/data/clicks-csv": RunNoise(0, 1.0, 1.0, half_width=1e3, apart=1e3, settled=False)}
    assert "differ by up to" in unwrapped(full_text(sample_sweep(noise=noise)))


CACHE = LocalCache(
    folder="/nvme",
    limit_bytes=400_000_000,
    uncached=CachePass(20_000, 0.8),
    filling=CachePass(16_000, 0.84),
    cached=CachePass(80_000, 0.01),
    splits=4,
    rounds=4,
    cached_bytes=33_500_000,
    dataset_bytes=1_000_000_000,
    gain=4.0,
    gain_interval=(3.8, 4.2),
    difference="faster",
    break_even=1.33,
    break_even_interval=(1.2, 1.5),
    share=0.4,
    limited=CachePass(28_600, 0.7),
    evicting_hits=0.0935,
    least_share=0.949,
)


def cached(**changes: Any) -> str:
    """Return the words of a report on a sweep with a local cache."""
    measured = {"/data/clicks-csv": replace(CACHE, **changes)}
    report = full_text(sample_sweep(local_cache=measured))
    return unwrapped(section(report, "What would a local cache bring?"))


def test_a_local_cache_has_its_gain_its_break_even_and_its_size() -> None:
    text = cached()
    assert "all, without a cache 20,000 80.0 %" in " ".join(text.split())
    assert "later epochs are 4.00× (95 %: 3.80–4.20) as fast" in text
    assert "paid for its filling after 1.33 epochs (95 %: 1.20–1.50)" in text
    assert "All of the data set takes 1.00 GB." in text
    assert "Its 400 MB hold 40.0 %, with which later epochs have 28,600 samples/s" in text
    assert "9.3 % in one that is shuffled" in text
    assert "must hold at least 949 MB (94.9 %)" in text
    code = 'read = pipeprof.ReadOptions(local_cache="/nvme", local_cache_bytes=400000000)'
    assert code in full_text(sample_sweep(local_cache={"/data/clicks-csv": CACHE}))


def test_a_local_cache_that_may_never_pay_says_so() -> None:
    assert "(95 %: 1.20–never)" in cached(break_even_interval=(1.2, None))


def test_a_local_cache_that_is_not_enough_says_so() -> None:
    text = cached(share=1.0, limit_bytes=None, least_share=None)
    assert "Even with all of the data set in the cache the accelerator starves." in text
    assert "evicts" not in text


@pytest.mark.parametrize(
    ("difference", "says"), [("none", "are not clearly faster, 1.01×"), ("slower", "are slower")]
)
def test_a_local_cache_that_brings_nothing_has_no_code(difference: Any, says: str) -> None:
    measured = {"/data/clicks-csv": replace(CACHE, difference=difference, gain=1.01)}
    report = full_text(sample_sweep(local_cache=measured))
    assert f"A local cache brings nothing: later epochs {says}" in unwrapped(report)
    assert "ReadOptions" not in report


def test_an_uncertain_prediction_is_a_range() -> None:
    certain = Untried("/data/clicks-csv", 1024, 4, 2, 60_000.0, 66_000.0, 55_000.0)
    uncertain = replace(certain, num_workers=8, at_most=101_000.0, at_least=40_000.0)
    text = full_text(replace(sample_sweep(), untried=(certain, uncertain)))
    assert "60,000" in text
    assert "40,000–101,000" in text
    assert "only a run of the setting would narrow it" in " ".join(text.split())
    alone = full_text(replace(sample_sweep(), untried=(certain,)))
    assert "instead of a number" not in " ".join(alone.split())
