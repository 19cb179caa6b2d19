"""List the training workloads of MLPerf Storage: how fast an accelerator takes samples.

The newest rules, v3.0, have three: unet3d/b200, retinanet/b200 and retinanet/mi355. All others are
what-if: their figures are the benchmark's own, but no submission is made with them.

Source: mlcommons/storage, release v3.0, which says what is closed, open and whatif. The figures are
those of configs/dlio/workload/*.yaml: of v1.0 and v2.0 for a100 and h100, of v3.0 for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeprof.errors import UsageError

RULES = "3.0"
"""The newest version of the rules."""


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
    """Seconds of computation for one batch."""
    au_bar: float
    """Accelerator utilisation that the benchmark requires, 0..1."""
    read_bytes_per_sample: float | None = None
    """Bytes read where only some columns are; ``None`` where the whole record is read."""
    rules: str = RULES
    """Version of the rules that these figures are from."""
    what_if: bool = True
    """Whether the newest rules have no such training workload."""

    @property
    def name(self) -> str:
        return f"{self.workload}/{self.accelerator}"

    @property
    def origin(self) -> str:
        """Source of the figures, in a few words."""
        label = ", what-if" if self.what_if else ""
        return f"MLPerf Storage v{self.rules}, {self.name}{label}"

    @property
    def note(self) -> str | None:
        """A notice about a what-if workload; ``None`` for one of the newest rules."""
        if not self.what_if:
            return None
        official = ", ".join(each.name for each in WORKLOADS if not each.what_if)
        return (
            f"{self.name} is a what-if: the training workloads of MLPerf Storage v{RULES} are "
            f"{official}. Its figures are those of v{self.rules}."
        )

    def step_s(self, batch_size: int) -> float:
        """Return the computation time of a batch of another size, in proportion."""
        return self.computation_time_s * batch_size / self.batch_size


WORKLOADS = (
    # derived by its authors as h100 / 2, not measured
    Workload("unet3d", "b200", "npz", 7, 146_600_628, 1, 0.162, 0.9, what_if=False),
    Workload("retinanet", "b200", "jpeg", 24, 322_957, 1, 0.04755, 0.85, what_if=False),
    Workload("retinanet", "mi355", "jpeg", 32, 322_957, 1, 0.0634, 0.85, what_if=False),
    Workload("unet3d", "a100", "npz", 7, 146_600_628, 1, 0.636, 0.9, rules="2.0"),
    Workload("unet3d", "h100", "npz", 7, 146_600_628, 1, 0.323, 0.9, rules="2.0"),
    Workload("resnet50", "a100", "tfrecord", 400, 114_660.07, 1251, 0.435, 0.9, rules="2.0"),
    Workload("resnet50", "h100", "tfrecord", 400, 114_660.07, 1251, 0.224, 0.9, rules="2.0"),
    Workload("cosmoflow", "a100", "tfrecord", 1, 2_828_486, 1, 0.00551, 0.7, rules="2.0"),
    Workload("cosmoflow", "h100", "tfrecord", 1, 2_828_486, 1, 0.0035, 0.7, rules="2.0"),
    Workload("flux", "b200", "parquet", 48, 2_164_832, 288, 1.35, 0.9),
    Workload("flux", "mi355", "parquet", 72, 2_164_832, 288, 2.025, 0.9),
    # 40 of 200 columns are read: 160 of 761 bytes a row
    Workload("dlrm", "b200", "parquet", 16384, 761, 4_718_592, 0.000375, 0.7, 160),
    Workload("dlrm", "mi355", "parquet", 16384, 761, 4_718_592, 0.0005625, 0.7, 160),
)


def find_workload(name: str) -> Workload:
    """Return the workload with this name, e.g. ``"resnet50/h100"``; `UsageError` if unknown."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    official = ", ".join(each.name for each in WORKLOADS if not each.what_if)
    others = ", ".join(each.name for each in WORKLOADS if each.what_if)
    raise UsageError(
        f"{name!r} is not a known workload/accelerator; known are {official}, and as what-if "
        f"{others}"
    )
