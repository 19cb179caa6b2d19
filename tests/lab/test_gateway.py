"""A bucket mounted as a folder: a gateway has a cache of its own, into which nobody sees."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.model import SweepSpec
from pipeprof.sweep.plan import plan_sweep
from pipeprof.sweep.runner import run_sweep
from tests.s3.server import KEY, SECRET, Server, rclone, serving
from tests.support.requirements import missing
from tests.sweep.test_sweep import Listener

pytestmark = pytest.mark.lab


@contextmanager
def mounted(server: Server, bucket: str, folder: Path) -> Iterator[Path]:
    """The bucket as the folder ``mnt`` in ``folder``; what was read once is kept on this disk."""
    place = folder / "mnt"
    place.mkdir()
    remote = f":s3,provider=Rclone,endpoint='{server.endpoint}',access_key_id={KEY}"
    process = subprocess.Popen(
        [rclone(), "mount", "--config", "", "--cache-dir", str(folder / "kept"),
         "--vfs-cache-mode", "full", f"{remote},secret_access_key={SECRET}:{bucket}", str(place)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        patience = time.monotonic() + 30
        while not place.is_mount():
            if process.poll() is not None or time.monotonic() > patience:
                process.kill()
                missing(f"FUSE, with fusermount3 of the package fuse3: {process.communicate()[1]}")
            time.sleep(0.05)
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False, capture_output=True)
        process.terminate()
        process.communicate(timeout=30)


def test_what_a_gateway_keeps_is_unknown_and_said_to_be(tmp_path: Path) -> None:
    generate(GenerateSpec(str(tmp_path / "served/bucket/data"), "tabular", "parquet", 8_000_000))
    server = serving(tmp_path / "served", tmp_path / "said")
    with server as served, mounted(served, "bucket", tmp_path) as folder:
        for number, wanted in enumerate(("cold", "warm")):
            spec = SweepSpec(
                urls=(str(folder / "data"),), workers=(1,), prefetch=(2,), batch_sizes=(256,),
                step_s=0.001, trial_s=0.5, warmup_s=0.1, cache=wanted,
            )  # fmt: skip
            out = tmp_path / f"out{number}"
            (trial,) = run_sweep(plan_sweep(spec, out), Listener()).result.trials
            assert trial.cache.state == "unknown"
            assert "fuse.rclone may keep caches that cannot be observed" in trial.cache.evidence
