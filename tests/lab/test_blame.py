"""What a sweep blames, where it is known what holds the loader up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.cli.app import run
from tests.lab.conftest import RecordTruth
from tests.lab.disk import slow_disk
from tests.lab.far import BUCKET, NO_ETAG, far_store
from tests.s3.conftest import lead_to
from tests.s3.server import serving

pytestmark = [
    pytest.mark.lab,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

MB = 1_000_000
Captured = pytest.CaptureFixture[str]


class Swept:
    """Sweeps one setting, and says what it blames."""

    def __init__(self, capsys: Captured, out: Path, record_truth: RecordTruth) -> None:
        self._capsys, self._out, self._record_truth = capsys, out, record_truth

    def blames(self, case: str, truth: str, url: str, *options: str) -> str:
        """Once more where it is not the truth: something may have disturbed a trial of seconds."""
        found: list[str] = []
        while len(found) < 2 and truth not in found:
            quick = ["--workers", "1", "--step-ms", "1", "--batch-size", "64", *options]
            out = str(self._out / str(len(found)))
            assert run(["sweep", url, *quick, "--out", out, "--json"]) == 0
            result: dict[str, Any] = json.loads(self._capsys.readouterr().out)
            (trial,) = result["trials"]
            assert trial["verdict"] == "starved"
            found.append(str(trial["bottleneck"]))
        self._record_truth(f"sweep's blame: {case}", truth, ", then ".join(found))
        return found[-1]


@pytest.fixture
def swept(capsys: Captured, tmp_path: Path, record_truth: RecordTruth) -> Swept:
    return Swept(capsys, tmp_path / "out", record_truth)


def generated(folder: Path, kind: str, format_name: str, size_bytes: int, shards: int) -> str:
    generate(GenerateSpec(str(folder), kind, format_name, size_bytes, shards=shards))
    return str(folder)


@pytest.mark.parametrize("format_name", ["parquet", "tfrecord"])
def test_a_throttled_disk(format_name: str, tmp_path: Path, swept: Swept) -> None:
    url = generated(tmp_path / "data", "images", format_name, 150 * MB, shards=4)
    with slow_disk(tmp_path, bytes_per_s=20 * MB):
        found = swept.blames(f"disk at 20 MB/s, {format_name}", "storage-bandwidth", url)
    assert found == "storage-bandwidth"


@pytest.mark.link
@pytest.mark.parametrize("client", ["pyarrow", "s3fs"])
def test_small_requests_over_a_link_with_delay(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swept: Swept
) -> None:
    generated(tmp_path / "root" / BUCKET / "data", "tabular", "csv", 600_000, shards=30)
    # s3fs itself takes up to 20 ms for a request where system calls are slow
    with far_store(400, 40, tmp_path, monkeypatch):
        url, case = f"s3://{BUCKET}/data", f"40 ms of delay, 20 kB requests, {client}"
        found = swept.blames(
            case, "storage-latency", url, "--s3-client", client, "--batch-size", "100"
        )
    assert found == "storage-latency"


def test_small_requests_by_s3fs_without_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swept: Swept
) -> None:
    generated(tmp_path / "root" / BUCKET / "data", "images", "tfrecord", 4 * MB, shards=2)
    with serving(tmp_path / "root", tmp_path / "log", more=NO_ETAG) as server:
        lead_to(server.endpoint, monkeypatch)
        url, case = f"s3://{BUCKET}/data", "no delay, 8 KiB requests, s3fs"
        small = ["--read", "block=8KiB", "--batch-size", "1"]
        found = swept.blames(case, "storage-client", url, "--s3-client", "s3fs", *small)
    assert found == "storage-client"


def test_a_decoder_that_computes(tmp_path: Path, swept: Swept) -> None:
    url = generated(tmp_path / "data", "tabular", "csv", 20 * MB, shards=2)
    large = ["--cache", "warm", "--batch-size", "4096"]
    assert swept.blames("CSV from memory", "decode", url, *large) == "decode"


def test_a_transform_that_computes(tmp_path: Path, swept: Swept) -> None:
    url = generated(tmp_path / "data", "tabular", "parquet", 20 * MB, shards=2)
    # as a decoder of images does, it computes without Python's lock
    (tmp_path / "mine.py").write_text(
        "import hashlib\n\n"
        "def burn(batch):\n"
        "    hashlib.pbkdf2_hmac('sha256', b'password', b'salt', 50_000)\n"
        "    return batch\n"
    )
    own = ["--cache", "warm", "--transform", f"{tmp_path / 'mine.py'}:burn"]
    assert swept.blames("a transform that computes", "transform", url, *own) == "transform"
