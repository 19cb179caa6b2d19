"""What a sweep says of reading rows at random behind a link, against the bytes that it takes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.cli.app import run
from tests.lab.conftest import RecordTruth
from tests.lab.far import BUCKET, far_store

pytestmark = [
    pytest.mark.lab,
    pytest.mark.link,
    # Python from 3.12 on warns of every fork beside threads, and every S3 client has threads
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

FILES, GROUPS, ROWS, ROW_BYTES, BATCH = 8, 4, 500, 250, 64
SWEEP = [
    "sweep", f"s3://{BUCKET}/rows", "--workers", "1", "--batch-size", f"{BATCH}", "--step-ms", "0",
    "--trial-time", "1", "--warmup-time", "1", "--s3-client", "pyarrow", "--shuffle", "none,full",
]  # fmt: skip


def test_rows_at_random_cost_what_their_row_groups_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_truth: RecordTruth
) -> None:
    served, chance = tmp_path / "far", Random(0)
    folder = served / "root" / BUCKET / "rows"
    folder.mkdir(parents=True)
    for number in range(FILES):
        rows = [chance.randbytes(ROW_BYTES) for _ in range(GROUPS * ROWS)]
        pq.write_table(pa.table({"x": rows}), folder / f"{number}.parquet", row_group_size=ROWS)
    with far_store(100, 0, served, monkeypatch):
        out = tmp_path / "out"
        assert run([*SWEEP, "--out", str(out)]) == 0
    [found] = json.loads((out / "sweep.json").read_text())["row_orders"].values()
    none, full = found["orders"]

    groups = FILES * GROUPS
    read_of_a_batch = groups * (1 - (1 - 1 / groups) ** BATCH)
    times_as_many = read_of_a_batch * ROWS / BATCH
    bytes_more = full["bytes_per_sample"] / none["bytes_per_sample"]
    truths = {"bytes": (times_as_many, bytes_more), "speed": (1 / times_as_many, full["speed"])}
    for name, (truth, measured) in truths.items():
        what = f"rows read at random behind a link: {name}, as a multiple of rows in order"
        record_truth(what, f"{truth:.3g}", f"{measured:.3g}")
    assert bytes_more == pytest.approx(times_as_many, rel=0.1)
    assert full["speed"] == pytest.approx(1 / times_as_many, rel=0.3)
    assert full["splits_per_batch"] == pytest.approx(found["random_splits_per_batch"], rel=0.2)
