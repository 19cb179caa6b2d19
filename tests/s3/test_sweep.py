"""`pipeprof generate` and `pipeprof sweep` on a real S3 server, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from tests.s3.server import KEY, SECRET, Server

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

QUICK = ["--workers", "1", "--step-ms", "2", "--trial-time", "0.2", "--warmup-time", "0.05",
         "--batch-size", "64"]  # fmt: skip


def test_a_sweep_reads_every_batch_from_the_server_and_saves_no_secret(
    server: Server, bucket: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, out = f"s3://{bucket.name}/data", tmp_path / "out"
    options = ["--storage-options", json.dumps(server.options())]
    size = ["--size", "100kB", "--shards", "2", "--jobs", "1"]
    assert run(["generate", url, "--format", "parquet", *size, *options]) == 0
    assert run(["sweep", url, *QUICK, *options, "--out", str(out)]) == 0

    shown = capsys.readouterr()
    assert f"pipeprof.open_dataset({url!r}" in "".join(shown.out.split())
    saved = {path.name: path.read_text() for path in out.iterdir()}
    assert set(saved) == {"sweep.json", "trial-000.json"}
    for name, text in {**saved, "stdout": shown.out, "stderr": shown.err}.items():
        assert KEY not in text, name
        assert SECRET not in text, name
    profile = json.loads(saved["trial-000.json"])
    assert profile["source"]["url"] == url
    assert profile["stages"]["read"]["bytes"] > 0
    assert profile["stages"]["read"]["requests"] > 0
