"""Files that a user may not read or write. Root has to drop its privileges for these tests."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.env import UNWATCHED
from tests.support.requirements import missing

LAY_DOWN = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


@pytest.fixture
def folder(tmp_path):
    """``secret.csv`` may not be read, ``closed/`` not be written."""
    (tmp_path / "secret.csv").write_text("id\n1\n")
    (tmp_path / "secret.csv").chmod(0o000)
    (tmp_path / "closed").mkdir(mode=0o555)
    return tmp_path


def pipeprof(*arguments):
    root = os.getuid() == 0
    if root and not shutil.which("setpriv"):
        missing("permissions: we are root, and setpriv of util-linux is missing")
    return subprocess.run(
        [*(LAY_DOWN if root else []), sys.executable, "-m", "pipeprof", *arguments],
        capture_output=True, text=True, timeout=100, check=False,
        env=UNWATCHED,
    )  # fmt: skip


def test_a_file_that_may_not_be_read(folder):
    done = pipeprof("sweep", str(folder / "secret.csv"), "--out", str(folder / "out"))
    assert done.returncode == 1, done.stderr
    assert done.stderr == f"pipeprof: {folder}/secret.csv cannot be read: Permission denied.\n"


def test_a_profile_that_may_not_be_read(folder):
    done = pipeprof("report", str(folder / "secret.csv"))
    assert done.returncode == 1, done.stderr
    assert done.stderr == f"pipeprof: {folder}/secret.csv cannot be read: Permission denied.\n"


def test_a_folder_that_may_not_be_written(folder):
    target = str(folder / "closed/data")
    done = pipeprof("generate", target, "--format", "csv", "--size", "1kB", "--jobs", "1")
    assert done.returncode == 1, done.stderr
    assert "cannot be written: permission denied; choose a folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((folder / "closed").iterdir()) == []


def test_results_that_may_not_be_written(folder):
    (folder / "open.csv").write_text("id\n1\n2\n")
    done = pipeprof("sweep", str(folder / "open.csv"), "--out", str(folder / "closed/out"))
    assert done.returncode == 1, done.stderr
    assert "closed/out cannot be made: Permission denied" in done.stderr
