"""`pipeprof compare`, by hand and in continuous integration."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.cli.app import run
from pipeprof.model import Profile
from pipeprof.store import load
from tests.comparisons import drawn
from tests.report.full import full_markdown
from tests.report.html.pages import read
from tests.samples import sample_profile
from tests.sweep_samples import sample_sweep

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def runs(tmp_path: Path) -> Callable[..., list[str]]:
    """Saves profiles as 0.json, 1.json, …"""

    def save(*profiles: Profile) -> list[str]:
        for place, profile in enumerate(profiles):
            profile.save(tmp_path / f"{place}.json")
        return [str(tmp_path / f"{place}.json") for place in range(len(profiles))]

    return save


def test_two_runs_are_compared_verdict_first(
    runs: Callable[..., list[str]], capsys: Captured
) -> None:
    files = runs(drawn(0), drawn(1, decode_ms=18.0))
    assert run(["compare", *files]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("SLOWER: 0.7")
    assert files[1] in " ".join(printed.out.split())
    assert printed.err == ""


def test_json_has_what_is_shown(runs: Callable[..., list[str]], capsys: Captured) -> None:
    assert run(["compare", *runs(drawn(0), drawn(1, decode_ms=18.0), drawn(2)), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "pipeprof.comparison/1"
    slower, equal = printed["pairs"]
    assert (slower["speed"]["shown"], equal["speed"]["shown"]) == ("slower", "none")
    low, high = slower["stages"]["decode"]["interval"]
    assert low <= 0.006 <= high
    assert slower["before"]["file"].endswith("0.json")


def test_markdown_goes_to_stdout_and_a_page_to_its_file(
    runs: Callable[..., list[str]], tmp_path: Path, capsys: Captured
) -> None:
    page = tmp_path / "compared.html"
    arguments = ["compare", *runs(drawn(0), drawn(1)), "--markdown", "--html", str(page)]
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("**NO DIFFERENCE** that this data can show")
    assert "1.00× the samples/s (95 %: 0.8" in read(page.read_text("utf-8"))


@pytest.mark.parametrize(
    ("decode_ms", "limit", "code", "says"),
    [
        (18.0, "10%", 3, "slower by more than the allowed 10.0 %"),
        (18.0, "60%", 0, ""),
        (18.0, "25%", 0, "do not show whether it is more than 25.0 % slower"),
        (12.0, "1%", 0, "do not show whether it is more than 1.0 % slower"),
        (6.0, "1%", 0, ""),
    ],
)
def test_ci_fails_where_the_data_show_it_and_says_where_they_cannot_tell(
    decode_ms: float, limit: str, code: int, says: str,
    runs: Callable[..., list[str]], capsys: Captured,
) -> None:  # fmt: skip
    files = runs(drawn(0), drawn(1, decode_ms=decode_ms))
    assert run(["compare", *files, "--fail-if-slower", limit]) == code
    message = capsys.readouterr().err
    assert says in message
    assert message.count("\n") == bool(says)
    assert not says or files[1] in message


def test_one_slower_run_of_several_is_enough(
    runs: Callable[..., list[str]], capsys: Captured
) -> None:
    files = runs(drawn(0), drawn(1), drawn(2, decode_ms=30.0))
    assert run(["compare", *files, "--fail-if-slower", "20%"]) == 3
    assert capsys.readouterr().err.startswith(f"pipeprof: {files[2]}: 0.5")


def test_a_slower_run_on_another_machine_is_told_so(
    runs: Callable[..., list[str]], capsys: Captured
) -> None:
    other = replace(sample_profile().environment, platform="Linux 6.12 aarch64")
    files = runs(drawn(0), drawn(1, decode_ms=30.0, environment=other))
    assert run(["compare", *files, "--fail-if-slower", "20%"]) == 3
    assert "(not directly comparable: another machine or kernel)" in capsys.readouterr().err


def test_a_run_of_a_few_batches_fails_nobody(
    runs: Callable[..., list[str]], capsys: Captured
) -> None:
    files = runs(drawn(0), drawn(1, batches=8, decode_ms=60.0))
    assert run(["compare", *files, "--fail-if-slower", "5%"]) == 0
    assert "too few batches were measured" in capsys.readouterr().err


def saved_sweep(folder: Path, *urls: str, decode_ms: float = 12.0) -> str:
    """Write a sweep of one setting per data set, with the profiles of its trials."""
    sweep = sample_sweep()
    trials = []
    folder.mkdir()
    for place, url in enumerate(urls):
        trials.append(replace(sweep.trials[0], url=url, profile=f"trial-{place:03d}.json"))
        drawn(place + len(folder.name), decode_ms=decode_ms).save(folder / trials[-1].profile)
    replace(sweep, trials=tuple(trials), advice=(), planned=len(urls)).save(folder / "sweep.json")
    return str(folder)


def test_of_a_sweep_its_best_setting_of_each_data_set_is_compared(
    tmp_path: Path, capsys: Captured
) -> None:
    before = saved_sweep(tmp_path / "one", "/data/csv", "/data/parquet", "/data/old")
    after = saved_sweep(tmp_path / "other", "/data/parquet", "/data/csv", decode_ms=18.0)
    assert run(["compare", before, after, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(Path(pair["before"]["file"]).name, Path(pair["after"]["file"]).name)
            for pair in printed["pairs"]] == [
        ("trial-000.json", "trial-001.json"), ("trial-001.json", "trial-000.json"),
    ]  # fmt: skip
    assert {pair["speed"]["shown"] for pair in printed["pairs"]} == {"slower"}
    assert "left out (1)" in printed["notes"][0]


def test_sweeps_of_one_data_set_each_are_compared_wherever_it_lies(
    tmp_path: Path, capsys: Captured
) -> None:
    before = saved_sweep(tmp_path / "one", "/data/csv")
    after = saved_sweep(tmp_path / "other", "s3://bucket/csv")
    assert run(["compare", before, after]) == 0
    assert "NO DIFFERENCE" in capsys.readouterr().out


def test_what_cannot_be_compared_is_said_in_a_line(
    tmp_path: Path, runs: Callable[..., list[str]], capsys: Captured
) -> None:
    one, other = runs(drawn(0), drawn(1))
    sweep = saved_sweep(tmp_path / "sweep", "/data/a", "/data/b")
    lone = saved_sweep(tmp_path / "lone", "/data/c", "/data/d")
    bare = tmp_path / "bare"
    bare.mkdir()
    replace(sample_sweep(), trials=()).save(bare / "sweep.json")
    (tmp_path / "lone" / "trial-000.json").unlink()
    for arguments, code, says in (
        ([one], 2, "name at least two"),
        ([one, one], 2, "are the same file"),
        ([one, sweep], 2, "is a sweep and"),
        ([sweep, lone], 1, "trial-000.json does not exist"),
        ([sweep, str(bare)], 1, "holds no trial yet"),
        ([one, str(tmp_path / "none.json")], 1, "does not exist"),
        (
            [one, "s3://key:secret@bucket/run.json"],
            2,
            "compare reads only local files; copy s3://bucket",
        ),
        ([one, other, "--html", other], 2, "is the input file"),
        ([one, other, "--html", str(tmp_path)], 1, "is a folder"),
        ([one, other, "--json", "--markdown"], 2, "give one of them"),
        ([one, other, "--fail-if-slower", "200%"], 2, "is not between 0% and 100%"),
    ):
        assert run(["compare", *arguments]) == code, arguments
        printed = capsys.readouterr()
        assert says in printed.err
        assert "secret" not in printed.err
        assert printed.out == ""


def test_sweeps_without_a_data_set_in_common(tmp_path: Path, capsys: Captured) -> None:
    one = saved_sweep(tmp_path / "one", "/data/a", "/data/b")
    other = saved_sweep(tmp_path / "other", "/data/c", "/data/d")
    assert run(["compare", one, other]) == 2
    assert "have no data set in common" in capsys.readouterr().err


def test_report_and_its_markdown(tmp_path: Path, capsys: Captured) -> None:
    sample_profile().save(tmp_path / "run.json")
    sample_sweep().save(tmp_path / "sweep.json")
    for name in ("run.json", "sweep.json"):
        assert run(["report", str(tmp_path / name), "--markdown"]) == 0
        assert capsys.readouterr().out == full_markdown(load(tmp_path / name))
    assert run(["report", str(tmp_path / "run.json"), "--markdown", "--json"]) == 2
    assert "give one of them" in capsys.readouterr().err


class Sleepy(Dataset[torch.Tensor]):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> torch.Tensor:
        with pipeprof.stage("decode"):
            time.sleep(self._seconds)
        return torch.zeros(4)


def profiled(seconds: float) -> Profile:
    loader = pipeprof.wrap(DataLoader(Sleepy(seconds), num_workers=1))
    for _ in loader:
        time.sleep(0.001)
    return loader.profile()


@pytest.mark.timed
def test_a_real_loader_that_decodes_twice_as_long_is_told_from_one_that_does_not(
    runs: Callable[..., list[str]], capsys: Captured
) -> None:
    files = runs(profiled(0.010), profiled(0.020), profiled(0.010))
    assert run(["compare", *files, "--json", "--fail-if-slower", "20%"]) == 3
    slower, same = json.loads(capsys.readouterr().out)["pairs"]
    assert slower["speed"]["shown"] == "slower"
    assert slower["stages"]["decode"]["shown"] == "more"
    low, high = slower["stages"]["decode"]["interval"]
    assert low <= 0.010 <= high
    assert "decode takes" in slower["headline"]
    assert same["speed"]["interval"][0] < 1.1
    assert same["speed"]["interval"][1] > 0.9
