"""What is blamed is what pays: loaders whose answer is known, run again with less of a cost."""

from __future__ import annotations

import pytest

from benchmarks.blame_judge import Judged
from benchmarks.blame_runs import try_out
from benchmarks.random_loaders import Cost, Jitter, LoaderSpec
from tests.lab.conftest import RecordTruth

pytestmark = [
    pytest.mark.lab,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

SOME = Jitter(0.2)
PYTHON = Cost("python", "decode", 1, 0.016, SOME)
COLLATE = Cost("python", "collate", 1, 0.011, SOME)
DISK = Cost("disk", "read", 8, 1.6e-3)
TENSORS = Cost("tensors", "transfer", 60, 0.2e-3)
LITTLE = Cost("sleep", "transform", 1, 0.001, SOME)

CASES = {
    "python": (LoaderSpec(1, (PYTHON, LITTLE), True, 1, step_s=0.001), "decode"),
    "collate": (LoaderSpec(2, (COLLATE, LITTLE), False, 1, step_s=0.001), "collate"),
    "six workers": (LoaderSpec(3, (PYTHON,), False, 6, batch_size=4), "worker-cpu"),
    "disk": (LoaderSpec(4, (DISK, LITTLE), True, 2, step_s=0.002), "read"),
    "tensors": (LoaderSpec(5, (TENSORS, LITTLE), True, 2, step_s=0.001), "transfer"),
}
"""And the cause that is worth most. Six workers on few cores compute no faster than these do: what
they compute is the cost, whether it is named by its stage or by the cores."""


@pytest.mark.parametrize("case", CASES)
def test_what_is_blamed_first_gains_most(case: str, record_truth: RecordTruth) -> None:
    spec, cause = CASES[case]
    tried = try_out(spec, turns=2, seconds=1.5, threshold=0.05)
    assert tried is not None
    one = Judged.of(tried)
    firsts = ", ".join(str(said.first) for said in one.profiles)
    record_truth(f"blamed, {case}", cause, firsts)
    record_truth(
        f"gain where {cause} is 25 % cheaper, {case}", "up to 33 %", f"{one.gain(cause):.0%}"
    )
    assert 0.08 < one.gain(cause) < 0.55
    assert "wrong" not in {one.outcome(said) for said in one.profiles}
    assert all(said.first in one.cuts for said in one.profiles), firsts
    for held in one.held():
        if held.first:
            assert abs(held.error) < 0.12
