"""The pipelines of known speed that the prediction benchmark reads from a disk and over a link."""

import pytest

from benchmarks.prediction_lab import DISK_BYTES_PER_S, LINK_MBIT_PER_S
from benchmarks.prediction_pipelines import BATCH_SIZE
from benchmarks.prediction_runs import Job, measure, place

pytestmark = pytest.mark.lab

LIMITS = {
    "throttled disk": DISK_BYTES_PER_S / (BATCH_SIZE * 32 * 1024),
    "shaped link": LINK_MBIT_PER_S * 1e6 / 8 * 1448 / 1514 / (BATCH_SIZE * 16 * 1024),
}
"""Batches a second, whatever the workers."""


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("name", LIMITS)
def test_four_workers_get_what_the_disk_or_the_link_gives_and_no_more(name):
    with place(name):
        run = measure(Job(name, 4, 2, 0.0, 1), 1.5)
    assert run.batches_per_s == pytest.approx(LIMITS[name], rel=0.1)
