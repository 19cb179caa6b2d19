"""`pipeprof probe` on a real S3 server: it asks for what it said it would, and shows no secret."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from tests.s3.relay import Relay
from tests.s3.server import KEY, SECRET

QUICK = ["--seconds", "20", "--block", "4KiB", "--block", "64KiB", "--in-flight", "4",
         "--feed", "0.2"]  # fmt: skip


@pytest.mark.timed
@pytest.mark.parametrize("processes", [1, 2])
def test_no_more_requests_than_announced_are_sent(
    processes: int, relay: Relay, bucket: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.bin", "b.bin"):
        (bucket / name).write_bytes(os.urandom(1 << 18))
    options = json.dumps({"key": KEY, "secret": SECRET, "endpoint_url": relay.endpoint})
    asked = [*QUICK, "--processes", str(processes), "--storage-options", options]
    url = f"s3://{bucket.name}/"
    assert run(["probe", url, *asked, "--max-requests", "150", "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)["pipeprof probe"]
    # listing tries out with one byte whether the client suits the store
    ranges = [sent["range"] for sent in relay.headers if "range" in sent]
    assert found["read_requests"] == len(ranges) - ranges.count("bytes=0-0") <= 150
    assert found["client"] == "obstore"
    assert (found["objects"], found["size_bytes"]) == (2, 1 << 19)
    assert KEY not in shown.out + shown.err
    assert SECRET not in shown.out + shown.err


def test_a_probe_announces_its_requests(bucket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bucket / "a.bin").write_bytes(os.urandom(1 << 18))
    url = f"s3://{bucket.name}/a.bin"
    assert run(["probe", url, *QUICK, "--seconds", "1", "--max-requests", "150"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0] == (
        f"{url}: 1 object; the probe makes at most 150 read requests for at most 8.00 GB "
        "(--max-requests, --max-bytes). Stores may bill both."
    )
    assert "Read " in shown.out
