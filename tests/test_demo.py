"""`make demo`, shortened: what it prints is what happened."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from pipeprof.model import Recommendation
from scripts.demo import Demo, on_s3, settings_in, show_fix, write_photos
from scripts.demo_s3 import LATENCY_S, NoServer, serve_s3
from tests.s3.server import rclone


@pytest.fixture
def path_of_venv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the programs of this environment first on the path, as make does."""
    monkeypatch.setenv("PATH", f"{Path(rclone()).parent}:{os.environ['PATH']}")


@pytest.mark.timed
def test_the_fix_that_is_advised_feeds_the_accelerator(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repo)
    write_photos(tmp_path / "photos", 128)
    show_fix(Demo(tmp_path), batches=32)
    output = capsys.readouterr().out
    assert re.search(r"^  verdict  STARVED: ", output, re.MULTILINE)
    assert re.search(r"^  cause    fetch, ", output, re.MULTILINE)
    [proposed] = re.findall(r"^  advice   num_workers: 0 → (\d+)", output, re.MULTILINE)
    assert f"$ pipeprof run --set num_workers={proposed}," in output
    assert re.search(r"^  promised ", output, re.MULTILINE)
    [gain] = re.findall(r"^  measured +\d+ +([\d.]+)×", output, re.MULTILINE)
    assert float(gain) > 1.2
    for name in ("compare.html", "before.log", "after.log"):
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.usefixtures("path_of_venv")
def test_it_fits_a_screen_and_formats_differ_in_what_they_read(repo: Path, tmp_path: Path) -> None:
    """The training is too short for a verdict."""
    short = ["--photos", "32", "--batches", "6", "--table", "8MB", "--batch", "512",
             "--trial-s", "0.2"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "scripts.demo", "--folder", tmp_path / "demo", *short],
        cwd=repo, capture_output=True, text=True,
    )  # fmt: skip
    output = done.stdout
    assert (done.returncode, done.stderr) == (0, ""), output
    assert len(output.splitlines()) < 60

    figures = r" +([\d,]+) +([\d,]+) +([\d.]+) (k?)B   [\d.]+ %, \w+"
    read = {}
    for label in ("CSV (gzip)", "TFRecord", "Parquet", "Parquet on S3"):
        [(*_, size, kilo)] = re.findall(f"^  {re.escape(label)}{figures}", output, re.MULTILINE)
        read[label] = float(size) * (1000 if kilo else 1)
    assert read["Parquet"] < read["CSV (gzip)"] / 5 < read["TFRecord"] / 5

    [page] = re.findall(r"^Open (\S+\.html) ", output, re.MULTILINE)
    assert "train_photos.py" in Path(page).read_text()
    for name in ("sweep.html", "before.log", "sweep.log"):
        assert (tmp_path / "demo" / name).stat().st_size > 0


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        (
            "DataLoader(…, num_workers=2, prefetch_factor=2, persistent_workers=True)",
            "num_workers=2,prefetch_factor=2,persistent_workers=True",
        ),
        ("DataLoader(…, num_workers=0)", "num_workers=0"),
        ("def pack(samples): …\n\nDataLoader(…, collate_fn=pack)", ""),
        (None, ""),
    ],
)
def test_advice_is_taken_where_it_is_of_the_loaders_settings(
    code: str | None, settings: str
) -> None:
    assert settings_in(Recommendation("it", "so", "so", "why", code=code)) == settings


@pytest.mark.usefixtures("path_of_venv")
def test_the_bucket_is_as_far_away_as_is_said_and_gone_with_the_demo(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    with serve_s3(tmp_path) as env:
        for _ in range(3):
            started = time.monotonic()
            with pytest.raises(HTTPError, match=r"40[03]") as refused:  # a key is asked for
                urlopen(f"{env['AWS_ENDPOINT_URL']}/table/", timeout=20)
            refused.value.close()
            assert time.monotonic() - started >= LATENCY_S
    with pytest.raises(URLError, match="refused"):
        urlopen(env["AWS_ENDPOINT_URL"], timeout=5)
    assert env["AWS_SECRET_ACCESS_KEY"] not in (tmp_path / "s3.log").read_text()


@pytest.mark.parametrize("program", [None, "#!/bin/sh\necho no such command >&2; exit 1\n"])
def test_without_a_server_it_says_so_in_a_line_and_goes_on(
    program: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    if program is not None:
        (tmp_path / "rclone").write_text(program)
        (tmp_path / "rclone").chmod(stat.S_IRWXU)
    with ExitStack() as stack:
        assert on_s3(Demo(tmp_path), stack) == []
    output = capsys.readouterr().out
    assert output.startswith("  S3 is left out: ")
    assert len(output.splitlines()) == 1
    with pytest.raises(NoServer), serve_s3(tmp_path):
        pass
