"""Commands write pages completely or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from pipeprof.store import load
from tests.report.full import full_markdown, full_page
from tests.samples import sample_profile
from tests.support.env import UNWATCHED
from tests.sweep_samples import sample_sweep

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    sample_profile().save(path)
    return path


def test_report_writes_a_profile_as_a_page(saved: Path, capsys: Captured) -> None:
    out = saved.with_name("run.html")
    assert run(["report", str(saved), "--html", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == full_page(sample_profile())
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{out}: open it in a browser.\n"


def test_report_writes_a_sweep_as_a_page(tmp_path: Path) -> None:
    sample_sweep().save(tmp_path / "sweep.json")
    assert run(["report", str(tmp_path), "--html", str(tmp_path / "sweep.html")]) == 0
    assert (tmp_path / "sweep.html").read_text("utf-8") == full_page(load(tmp_path / "sweep.json"))


def test_a_page_and_json_and_a_verdict_at_once(saved: Path, capsys: Captured) -> None:
    out = saved.with_name("run.html")
    asked = ["report", str(saved), "--html", str(out), "--json", "--fail-if-starved", "10%"]
    assert run(asked) == 3
    assert json.loads(capsys.readouterr().out) == json.loads(saved.read_bytes())
    assert out.exists()


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("folder", "is a folder; name the file to write"),
        ("nowhere/run.html", "cannot be written: No such file or directory"),
        ("run.json/run.html", "cannot be written: Not a directory"),
        ("x" * 300 + ".html", "cannot be written: File name too long"),
    ],
)
def test_an_unwritable_path_leaves_no_file(
    out: str, says: str, saved: Path, capsys: Captured
) -> None:
    (saved.parent / "folder").mkdir()
    before = sorted(saved.parent.rglob("*"))
    assert run(["report", str(saved), "--html", str(saved.parent / out)]) == 1
    assert says in capsys.readouterr().err
    assert sorted(saved.parent.rglob("*")) == before


def test_a_profile_is_not_replaced_by_its_own_page(saved: Path, capsys: Captured) -> None:
    before = saved.read_bytes()
    assert run(["report", str(saved), "--html", str(saved)]) == 2
    assert "is the input file; name another" in capsys.readouterr().err
    assert saved.read_bytes() == before


def test_a_damaged_profile_leaves_the_old_page_alone(saved: Path, capsys: Captured) -> None:
    out = saved.with_name("run.html")
    out.write_text("the last one")
    saved.write_bytes(saved.read_bytes()[:-300])
    assert run(["report", str(saved), "--html", str(out)]) == 1
    assert "cut short" in capsys.readouterr().err
    assert out.read_text() == "the last one"


def test_a_page_is_written_without_torch_and_in_any_locale(saved: Path) -> None:
    code = (
        "import sys; from pipeprof.cli.app import run; "
        f"run(['report', {str(saved)!r}, '--html', {str(saved.with_name('a.html'))!r}]); "
        "sys.exit('torch' in sys.modules or 'pyarrow' in sys.modules)"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 0
    assert "100 µs" in saved.with_name("a.html").read_text("utf-8")


@pytest.mark.slow
def test_run_writes_a_page_beside_each_profile(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from torch.utils.data import DataLoader\nfor batch in DataLoader(range(40), 2): pass\n"
    )
    command = [sys.executable, "-m", "pipeprof", "run", "--html", "--quiet", "train.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=UNWATCHED, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    names = sorted(path.name for path in (tmp_path / "pipeprof-run").iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["html", "json"]
    assert "train.py" in (tmp_path / "pipeprof-run" / names[0]).read_text("utf-8")


def test_sweep_writes_its_page_at_its_end_and_prints_markdown(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(2000)))
    quick = ["--workers", "0", "--step-ms", "2", "--trial-time", "0.1", "--warmup-time", "0.05",
             "--batch-size", "64", "--out", str(tmp_path / "out")]  # fmt: skip
    page = tmp_path / "sweep.html"
    asked = [*quick, "--html", str(page), "--markdown"]
    assert run(["sweep", str(tmp_path / "data"), *asked]) == 0
    assert str(tmp_path / "data") in page.read_text("utf-8")
    assert capsys.readouterr().out == full_markdown(load(tmp_path / "out" / "sweep.json"))


def test_a_sweep_that_could_not_write_its_page_does_not_begin(
    tmp_path: Path, capsys: Captured
) -> None:
    assert run(["sweep", str(tmp_path / "data"), "--html", str(tmp_path)]) == 1
    assert "is a folder" in capsys.readouterr().err
