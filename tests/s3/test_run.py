"""`pipeprof run` saves profiles in a bucket, from which `pipeprof gather` joins them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from pipeprof.storage.write import objects_below, open_object
from tests.cli.running import RUN, call
from tests.cli.test_gather import profile
from tests.s3.server import SECRET
from tests.support.env import UNWATCHED

SCRIPT = """
import subprocess, sys
import torch
from torch.utils.data import DataLoader

list(DataLoader(torch.arange(40.0), 4))
if sys.argv[1:]:
    subprocess.run([sys.executable, *sys.argv[1:]], check=True)
"""


@pytest.mark.slow
def test_profiles_of_all_processes_are_saved_in_a_bucket(bucket: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    out = f"s3://{bucket.name}/run"
    done = call([*RUN, "--out", out, "--html", "train.py", "train.py"], tmp_path, dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert f"pipeprof: saved {out}/train.py-6.json, {out}/train.py-6.html" in done.stderr
    below = {url.removeprefix(out) for url in objects_below(out)}
    (child,) = (url for url in below if "/process" in url and url.endswith(".json"))
    assert below == {"/train.py-6.json", "/train.py-6.html", child, child[:-5] + ".html"}
    assert SECRET not in done.stderr


def test_a_bucket_that_is_not_there_is_named_at_the_end(bucket: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    out = f"s3://{bucket.name}-none/run"
    done = call([*RUN, "--out", out, "train.py"], tmp_path, dict(os.environ))
    assert done.returncode == 0
    assert f"pipeprof: {out}/train.py-6.json cannot be written: no such object" in done.stderr
    assert "Confidence" in done.stderr, "the report is printed all the same"


def test_a_scheme_that_no_file_system_serves_is_refused_before_the_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')")
    command = [sys.executable, "-m", "pipeprof", "run", "--out", "none://bucket", "train.py"]
    done = call(command, tmp_path, UNWATCHED)
    assert (done.stdout, done.returncode) == ("", 2)
    assert "pipeprof: none://bucket cannot be opened: Protocol not known" in done.stderr


def test_ranks_are_gathered_from_a_bucket(
    bucket: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (0, 1):
        profile(rank).save(tmp_path / "train.json")
        with open_object(f"s3://{bucket.name}/run/host/rank{rank}/train.json") as sink:
            sink.write((tmp_path / "train.json").read_bytes())
    assert run(["gather", f"s3://{bucket.name}/run"]) == 0
    assert "Rank 1 is to be cured first" in " ".join(capsys.readouterr().out.split())
