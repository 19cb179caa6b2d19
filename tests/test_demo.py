"""What `make demo` runs, with a server of S3 and without one. In the place of pipeprof stands a
script that says how it was called, and whether the bucket is to be had."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.needs import missing

STAND_IN = f"""#!{sys.executable}
import os, sys
print("pipeprof", *sys.argv[1:])
if "s3://bucket/parquet" in sys.argv and sys.argv[1] == "sweep":
    import s3fs
    s3fs.S3FileSystem().pipe("bucket/parquet/part", b"rows")
    print(os.environ["AWS_ENDPOINT_URL"], os.environ["AWS_SECRET_ACCESS_KEY"])
"""
LOCAL = "pipeprof sweep demo/data/csv demo/data/parquet demo/data/tfrecord"


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A repository that holds the demo and nothing else."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(repo / "scripts/demo.sh", tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/pipeprof").write_text(STAND_IN)
    (tmp_path / "bin/pipeprof").chmod(0o755)
    return tmp_path


def demo(tree: Path) -> str:
    done = subprocess.run(
        ["bash", tree / "scripts/demo.sh"],
        env={**os.environ, "PATH": f"{tree}/bin:/usr/bin:/bin", "AWS_PROFILE": "the-users-own"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_one_of_the_formats_is_swept_on_s3_too_and_the_server_ends_with_it(tree: Path) -> None:
    rclone = shutil.which("rclone", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    (tree / "bin/rclone").symlink_to(rclone or missing("a real S3 server: rclone is missing"))
    said = demo(tree)
    assert "pipeprof generate s3://bucket/parquet --kind tabular --format parquet" in said
    assert f"{LOCAL} s3://bucket/parquet --workers" in said
    assert (tree / "demo/s3/bucket/parquet/part").read_bytes() == b"rows"
    [(endpoint, secret)] = re.findall(r"^(http\S+) (\w+)$", said, re.MULTILINE)
    assert len(secret) == 32
    with pytest.raises(URLError, match="refused"):
        urlopen(endpoint, timeout=5)
    assert secret not in said.replace(f"{endpoint} {secret}", "")
    assert secret not in (tree / "demo/s3.log").read_text()


@pytest.mark.parametrize("rclone", [None, "#!/bin/sh\necho no such command >&2; exit 1\n"])
def test_without_a_server_it_says_so_in_a_line_and_goes_on(rclone: str | None, tree: Path) -> None:
    if rclone is None and shutil.which("rclone", path="/usr/bin:/bin"):
        pytest.skip("rclone is part of this system")
    if rclone is not None:
        (tree / "bin/rclone").write_text(rclone)
        (tree / "bin/rclone").chmod(0o755)
    said = demo(tree)
    assert len(re.findall(r"^S3 is left out: .*\.$", said, re.MULTILINE)) == 1
    assert f"{LOCAL} --workers" in said
    assert "s3://" not in said
