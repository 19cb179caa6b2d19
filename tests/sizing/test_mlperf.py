"""The table is MLPerf's: its required bandwidths come out as published."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.sizing.mlperf import WORKLOADS, find_workload


@pytest.mark.parametrize(
    ("name", "gigabytes_per_s"),
    [
        # batch × bytes a sample / computation time, by hand
        ("unet3d/h100", 7 * 0.146600628 / 0.323),
        ("resnet50/a100", 400 * 114_660.07e-9 / 0.435),
        ("cosmoflow/h100", 2_828_486e-9 / 0.0035),
        ("dlrm/b200", 16384 * 160e-9 / 0.000375),
    ],
)
def test_demand_of_one_accelerator(name, gigabytes_per_s):
    workload = find_workload(name)
    per_sample = workload.read_bytes_per_sample or workload.record_bytes
    demand = workload.batch_size * per_sample / workload.computation_time_s
    assert demand / 1e9 == pytest.approx(gigabytes_per_s)


def test_a_step_is_in_proportion_to_the_batch():
    assert find_workload("resnet50/h100").step_s(100) == pytest.approx(0.056)


def test_names_are_unique_and_an_unknown_one_lists_the_known():
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names) == 13
    with pytest.raises(UsageError, match="known are unet3d/a100, unet3d/h100"):
        find_workload("resnet50/k80")
