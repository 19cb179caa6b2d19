"""The table is MLPerf's: its required bandwidths come out as published."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.sizing.mlperf import RULES, WORKLOADS, find_workload


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


def test_the_newest_rules_have_three_training_workloads():
    """mlcommons/storage, release v3.0: unet3d and retinanet; the others are whatif."""
    ruled = [workload for workload in WORKLOADS if not workload.what_if]
    assert [workload.name for workload in ruled] == [
        "unet3d/b200", "retinanet/b200", "retinanet/mi355",
    ]  # fmt: skip
    assert {workload.rules for workload in ruled} == {RULES} == {"3.0"}
    assert all(workload.note is None for workload in ruled)


def test_others_are_labelled_as_what_if_with_the_rules_of_their_figures():
    older = find_workload("resnet50/h100")
    assert older.origin == "MLPerf Storage v2.0, resnet50/h100, what-if"
    assert "unet3d/b200" in older.note
    assert find_workload("dlrm/b200").origin == "MLPerf Storage v3.0, dlrm/b200, what-if"


def test_names_are_unique_and_an_unknown_one_lists_the_known():
    names = [workload.name for workload in WORKLOADS]
    assert len(set(names)) == len(names) == 13
    with pytest.raises(UsageError, match=r"known are unet3d/b200, .* what-if unet3d/a100"):
        find_workload("resnet50/k80")
