"""Loaders that are well: nothing is found, and no setting is to be changed. On a machine that is
busy with other things even they may wait for a moment."""

from functools import partial

import pytest
import torch

from tests.findings.known import codes, nap, profiled, tiny

pytestmark = pytest.mark.timed

STEP_S = 0.060


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (partial(nap, 0.010), {"num_workers": 2}),
        (partial(nap, 0.020), {"num_workers": 1, "prefetch_factor": 4}),
        (tiny, {"num_workers": 0}),
        (tiny, {"num_workers": 1, "multiprocessing_context": "forkserver"}),
        (lambda index: torch.zeros(2**18), {"num_workers": 2}),
        (lambda index: {"image": torch.zeros(2**14), "label": index}, {"num_workers": 2}),
        (lambda index: nap(0.15 if index == 20 else 0.01, index), {"num_workers": 2}),
    ],
    ids=["sleeps", "one worker", "none", "forkserver", "a megabyte", "two tensors", "one hiccup"],
)
def test_a_loader_that_feeds(make, settings):
    if "multiprocessing_context" in settings:
        make = abs  # what can be pickled, and imported without the tests
    profile = profiled(25, make, STEP_S, **settings)
    assert codes(profile) == set()
    assert all(advice.code is None for advice in profile.recommendations)


def test_workers_that_persist():
    settings = {"num_workers": 2, "persistent_workers": True}
    profile = profiled(12, partial(nap, 0.01), STEP_S, epochs=3, **settings)
    assert codes(profile) == set()
    assert all(advice.code is None for advice in profile.recommendations)


def test_a_loader_that_reads_files(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(100_000))
    profile = profiled(25, lambda index: torch.tensor(len(path.read_bytes())), STEP_S)
    assert codes(profile) == set()
