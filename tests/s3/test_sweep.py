"""`pipeprof generate` and `pipeprof sweep` on a real S3 server, as a user runs them."""

from __future__ import annotations

import json
import os
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


def test_copies_on_the_server_are_read_from_it_and_removed(
    server: Server, bucket: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, url = tmp_path / "out", str(tmp_path / "data")
    options = ["--storage-options", json.dumps(server.options())]
    size = ["--size", "200kB", "--shards", "2", "--jobs", "1"]
    assert run(["generate", url, "--format", "csv", *size]) == 0
    asked = ["--formats", "csv,parquet", "--storage", f"local,s3://{bucket.name}/tmp"]
    assert run(["sweep", url, *QUICK, *asked, *options, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert files_in(bucket) == []
    saved = json.loads((out / "sweep.json").read_text())
    assert [trial["url"].partition("/pipeprof-out")[0] for trial in saved["trials"]] == [
        url, f"{out}-data/parquet-snappy", *[f"s3://{bucket.name}/tmp"] * 2, url,
    ]  # fmt: skip
    on_the_server = json.loads((out / "trial-003.json").read_text())
    assert on_the_server["stages"]["read"]["bytes"] > 0
    assert saved["trials"][3]["physical_bytes_per_sample"] is None, "networks are not counted"
    assert set(saved["conversion"]["advice"]) == {"local", f"s3://{bucket.name}/tmp"}
    for text in (shown.out, shown.err, (out / "sweep.json").read_text()):
        assert KEY not in text
        assert SECRET not in text


@pytest.mark.parametrize(
    ("place", "changed", "words"),
    [
        ("s3://no-such-bucket-here/tmp", {}, "no such object, folder or bucket"),
        ("s3://{bucket}/tmp", {"secret": "wrong"}, "access denied; check the credentials"),
    ],
)
def test_a_server_that_takes_no_copies(
    server: Server,
    bucket: Path,
    tmp_path: Path,
    place: str,
    changed: dict[str, str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = str(tmp_path / "data")
    assert run(["generate", url, "--format", "csv", "--size", "100kB", "--jobs", "1"]) == 0
    options = ["--storage-options", json.dumps(server.options(**changed))]
    asked = ["--formats", "parquet", "--storage", place.format(bucket=bucket.name)]
    assert run(["sweep", url, *QUICK, *asked, *options, "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"{place.format(bucket=bucket.name)}/pipeprof-out-" in said
    assert f": {words}" in said
    assert "Traceback" not in said
    assert SECRET not in said
    assert files_in(bucket) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def files_in(bucket: Path) -> list[str]:
    return [name for _, _, names in os.walk(bucket) for name in names]
