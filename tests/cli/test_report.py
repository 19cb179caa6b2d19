"""`pipeprof report`, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from pipeprof.model import BatchLog, Profile
from pipeprof.store import dumps
from tests.report.full import full_text
from tests.samples import fed_profile, sample_profile
from tests.sweep_samples import sample_sweep, sample_trial

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    sample_profile().save(path)
    return path


def pipeprof(*arguments: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "pipeprof", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_it_shows_a_profile(saved: Path, capsys: Captured) -> None:
    assert run(["report", str(saved)]) == 0
    assert capsys.readouterr().out == str(sample_profile())


def test_it_shows_all_of_it_where_that_is_asked_for(saved: Path, capsys: Captured) -> None:
    assert run(["report", str(saved), "--full"]) == 0
    assert capsys.readouterr().out == full_text(sample_profile())


def test_it_shows_a_sweep_by_its_file_or_its_folder(tmp_path: Path, capsys: Captured) -> None:
    sample_sweep().save(tmp_path / "sweep.json")
    for name in (tmp_path / "sweep.json", tmp_path, f"file://{tmp_path}"):
        assert run(["report", str(name)]) == 0
        assert capsys.readouterr().out == str(sample_sweep())


def test_it_opens_a_sweep_without_torch(tmp_path: Path) -> None:
    sample_sweep().save(tmp_path / "sweep.json")
    code = f"from pipeprof.cli import app; import sys; app.run(['report', {str(tmp_path)!r}]); "
    done = subprocess.run(
        [sys.executable, "-c", code + "sys.exit('torch' in sys.modules)"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


def test_json_prints_the_saved_json_and_nothing_else(saved: Path) -> None:
    done = pipeprof("report", saved, "--json")
    assert done.returncode == 0
    assert done.stdout == saved.read_bytes()
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("limit", "code"), [("0.1", 3), ("10%", 3), ("41.1%", 3), ("0.412", 0), ("0.5", 0), ("100%", 0)]
)
def test_a_starved_profile_fails_beyond_the_limit(
    saved: Path, capsys: Captured, limit: str, code: int
) -> None:
    assert run(["report", str(saved), "--fail-if-starved", limit]) == code
    printed = capsys.readouterr()
    assert printed.out == str(sample_profile()), "the report comes first in any case"
    assert ("starved 41.2 % of the time, more than" in printed.err) == (code == 3)


def test_a_fed_profile_passes_even_a_strict_limit(tmp_path: Path) -> None:
    fed_profile().save(tmp_path / "run.json")
    assert run(["report", str(tmp_path / "run.json"), "--fail-if-starved", "1%"]) == 0


def test_the_limit_holds_with_json_too(saved: Path, capsys: Captured) -> None:
    assert run(["report", str(saved), "--json", "--fail-if-starved", "10%"]) == 3
    assert json.loads(capsys.readouterr().out)["stall_s"] == 12.6


@pytest.mark.parametrize(("csv", "parquet", "code"), [(0.2, 0.01, 3), (0.09, 0.01, 0)])
def test_a_sweep_fails_when_a_data_set_is_starved_at_its_best(
    tmp_path: Path, capsys: Captured, csv: float, parquet: float, code: int
) -> None:
    slow = sample_trial("csv", 0, samples_per_s=10, starved=0.9)
    trials = (slow, sample_trial("csv", starved=csv), sample_trial("parquet", starved=parquet))
    sample_sweep(trials=trials, advice=()).save(tmp_path / "sweep.json")
    assert run(["report", str(tmp_path), "--fail-if-starved", "10%"]) == code
    message = capsys.readouterr().err
    assert ("/data/clicks-csv at its best setting: starved 20.0 %" in message) == (code == 3)


def test_a_sweep_without_a_trial_cannot_be_judged(tmp_path: Path, capsys: Captured) -> None:
    sample_sweep(trials=(), advice=()).save(tmp_path / "sweep.json")
    assert run(["report", str(tmp_path), "--fail-if-starved", "10%"]) == 1
    assert "holds no trial yet" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["2", "-0.1", "110%", "much", "nan"])
def test_a_share_out_of_range_is_wrong_usage(saved: Path, capsys: Captured, limit: str) -> None:
    assert run(["report", str(saved), f"--fail-if-starved={limit}"]) == 2
    assert limit in capsys.readouterr().err


def _truncated(path: Path) -> None:
    path.write_bytes(dumps(sample_profile())[:-200])


def _foreign(path: Path) -> None:
    path.write_text('{"loss": 0.3}')


def _list(path: Path) -> None:
    path.write_text("[1, 2]")


def _binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)))


def _newer(path: Path) -> None:
    path.write_bytes(dumps(sample_profile()).replace(b"pipeprof.profile/1", b"pipeprof.profile/9"))


def _wrong_type(path: Path) -> None:
    path.write_bytes(dumps(sample_profile()).replace(b'"stall_s":12.6', b'"stall_s":"long"'))


def _missing(path: Path) -> None:
    pass


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_missing, "does not exist"),
        (_folder, "is a folder without sweep.json"),
        (_truncated, "cut short"),
        (_foreign, "not a profile or sweep of pipeprof"),
        (_list, "not a profile or sweep of pipeprof"),
        (_binary, "is not JSON"),
        (_newer, "has schema 'pipeprof.profile/9'"),
        (_wrong_type, "stall_s"),
    ],
)
def test_what_is_not_a_profile_gets_one_clear_line(
    tmp_path: Path, capsys: Captured, make: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "it.json"
    make(path)
    for flags in ([], ["--json"]):
        assert run(["report", str(path), *flags]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"pipeprof: {path}")
        assert says in printed.err
        assert printed.err.count("\n") == 1


def test_a_url_is_not_opened_and_its_password_not_repeated(capsys: Captured) -> None:
    assert run(["report", "s3://key:secret@bucket/run.json"]) == 2
    message = capsys.readouterr().err
    assert "s3://bucket/run.json" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    "locale",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "C"],
)
def test_a_terminal_without_utf8_gets_ascii(tmp_path: Path, locale: dict[str, str]) -> None:
    sample_profile(name="données").save(tmp_path / "run.json")
    environment = {"PYTHONIOENCODING": "", **locale}
    done = pipeprof("report", tmp_path / "run.json", "--full", **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"########" in done.stdout
    assert b"donn\\xe9es" in done.stdout


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_that_leaves_early_is_not_complained_about(
    tmp_path: Path, flags: list[str]
) -> None:
    many_batches(sample_profile()).save(tmp_path / "run.json")
    with subprocess.Popen(
        [sys.executable, "-m", "pipeprof", "report", str(tmp_path / "run.json"), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
        assert process.wait(30) == 1
    assert complaint == b""


def many_batches(profile: Profile) -> Profile:
    """So many that their JSON fills a pipe."""
    columns = {f.name: getattr(profile.batches, f.name) * 1000 for f in fields(BatchLog)}
    return replace(profile, batches=BatchLog(**columns))


def test_a_full_disk_gets_one_clear_line(saved: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pipeprof", "report", str(saved)],
            stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == b"pipeprof: No space left on device.\n"
