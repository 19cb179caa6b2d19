"""The bench of sweeps over formats, readers and settings, and how its answers are compared."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import what_if
from benchmarks.what_if import CASES, Answer, Case, Judged, judge, print_summary
from tests.sweep_samples import sample_conversion


def test_an_answer_is_the_same_in_both_sweeps_though_copies_lie_elsewhere() -> None:
    sweep = sample_conversion()
    first, parquet, tfrecord, *_, control = (Answer.of(sweep, trial) for trial in sweep.trials)
    assert first == control
    assert [str(each) for each in (first, parquet, tfrecord)] == [
        "as it is, 2 × 2", "parquet:zstd, 2 × 2", "tfrecord, 2 × 2",
    ]  # fmt: skip


def test_the_data_sets_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 6


def test_a_data_set_is_swept_twice_and_both_answers_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(what_if, "WORKERS", (0,))
    monkeypatch.setattr(what_if, "PREFETCH", (2,))
    case = Case("tabular", "csv", ("parquet",), ("own", "polars"), batch_size=64)
    found = judge(case, tmp_path, 0.0, Namespace(mb=1, seed=1, seconds=0.05, pairs=4))
    assert found.tried == 1.0, "there is a single setting"
    assert found.interval[0] <= found.behind <= found.interval[1]
    line = capsys.readouterr().out.split()
    assert line[:6] == ["tabular,", "csv", "0", "ms", "5", "5"]


@pytest.mark.parametrize(
    ("judged", "met"),
    [
        ([Judged(0.2, 0.01, (0.0, 0.02)), Judged(0.25, 0.0, (0.0, 0.0))], "[bar all: met]"),
        ([Judged(0.2, 0.05, (0.04, 0.06))], "[bar all: MISSED]"),
        ([Judged(0.5, 0.0, (0.0, 0.0))], "[bar all: MISSED]"),
    ],
)
def test_the_bar(judged: list[Judged], met: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(judged)
    assert met in capsys.readouterr().out
