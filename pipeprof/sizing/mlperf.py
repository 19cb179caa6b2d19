"""The training workloads of MLPerf Storage: how fast an accelerator eats.

Source: mlcommons/storage, configs/dlio/workload/*.yaml (v1.0, v2.0) and its v3 branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeprof.errors import UsageError


@dataclass(frozen=True)
class Workload:
    """One model on one accelerator."""

    workload: str
    accelerator: str
    format: str
    batch_size: int
    record_bytes: float
    """Mean size of a sample on storage."""
    samples_per_file: int
    computation_time_s: float
    """Of one batch."""
    au_bar: float
    """Accelerator utilisation that the benchmark asks for, 0..1."""
    read_bytes_per_sample: float | None = None
    """Really read, where not all columns are; ``None``: the whole record."""

    @property
    def name(self) -> str:
        return f"{self.workload}/{self.accelerator}"

    def step_s(self, batch_size: int) -> float:
        """Computation time of a batch of another size, in proportion."""
        return self.computation_time_s * batch_size / self.batch_size


WORKLOADS = (
    Workload("unet3d", "a100", "npz", 7, 146_600_628, 1, 0.636, 0.9),
    Workload("unet3d", "h100", "npz", 7, 146_600_628, 1, 0.323, 0.9),
    # derived by its authors as h100 / 2, not measured
    Workload("unet3d", "b200", "npz", 7, 146_600_628, 1, 0.162, 0.9),
    Workload("resnet50", "a100", "tfrecord", 400, 114_660.07, 1251, 0.435, 0.9),
    Workload("resnet50", "h100", "tfrecord", 400, 114_660.07, 1251, 0.224, 0.9),
    Workload("cosmoflow", "a100", "tfrecord", 1, 2_828_486, 1, 0.00551, 0.7),
    Workload("cosmoflow", "h100", "tfrecord", 1, 2_828_486, 1, 0.0035, 0.7),
    Workload("retinanet", "b200", "jpeg", 24, 322_957, 1, 0.04755, 0.85),
    Workload("retinanet", "mi355", "jpeg", 32, 322_957, 1, 0.0634, 0.85),
    Workload("flux", "b200", "parquet", 48, 2_164_832, 288, 1.35, 0.9),
    Workload("flux", "mi355", "parquet", 72, 2_164_832, 288, 2.025, 0.9),
    # 40 of 200 columns are read: 160 of 761 bytes a row
    Workload("dlrm", "b200", "parquet", 16384, 761, 4_718_592, 0.000375, 0.7, 160),
    Workload("dlrm", "mi355", "parquet", 16384, 761, 4_718_592, 0.0005625, 0.7, 160),
)


def find_workload(name: str) -> Workload:
    """``"resnet50/h100"``. Raises `UsageError`, which lists what there is."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    known = ", ".join(workload.name for workload in WORKLOADS)
    raise UsageError(f"{name!r} is not a known workload/accelerator; known are {known}")
