"""What converting brings where the truth is known: on a disk that is the limit, fewer bytes read
are as much more speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.model import ConversionSpec, ReadOptions, SweepSpec
from pipeprof.sweep.plan import plan_sweep
from pipeprof.sweep.runner import run_sweep
from tests.lab.disk import slow_disk
from tests.sweep.test_convert import WritingListener

pytestmark = pytest.mark.lab

MIB = 2**20
"""Small parts, so that a trial sees many of them."""


def test_on_a_slow_disk_the_gain_is_that_in_bytes(tmp_path: Path, record_truth) -> None:
    url, out = str(tmp_path / "data"), tmp_path / "out"
    generate(GenerateSpec(url, "tabular", "csv", 20_000_000, shards=8))
    spec = SweepSpec(
        urls=(url,), workers=(1,), prefetch=(2,), batch_sizes=(1024,), step_s=0.0,
        trial_s=12.0, warmup_s=3.0, read=ReadOptions(split_bytes=MIB, block_bytes=MIB),
        conversion=ConversionSpec(("parquet:zstd",), ("local",), 20_000_000, (MIB,)),
    )  # fmt: skip
    with slow_disk(tmp_path, bytes_per_s=3_000_000):
        result = run_sweep(plan_sweep(spec, out), WritingListener()).result
    assert result.conversion is not None
    [gain] = result.conversion.gains
    record_truth(
        "sweep of formats on a throttled disk: speed of parquet:zstd over CSV",
        f"{1 / gain.read:.2f}×",
        f"{gain.speed:.2f}× ({gain.speed_interval[0]:.2f} to {gain.speed_interval[1]:.2f})",
    )
    assert gain.speed == pytest.approx(1 / gain.read, rel=0.15)
    assert gain.read == pytest.approx(gain.storage, rel=0.25), "but for what small parts overlap"
    assert gain.difference == "faster"
    for trial in result.trials:
        assert str(trial.bottleneck).startswith(("read", "storage")), trial.bottleneck
        moved = trial.physical_bytes_per_sample
        assert moved == pytest.approx(trial.bytes_per_sample, rel=0.15), trial.cache
