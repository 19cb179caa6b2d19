"""The gain if data were free is right for pipelines whose gain is known."""

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.errors import UsageError
from pipeprof.measure.clock import FakeClock


class Timed:
    """A loader that takes time on a fake clock."""

    def __init__(self, clock, batches=1000, load_s=0.03):
        self._clock, self._batches, self._load_s = clock, batches, load_s
        self.begun = 0

    def __iter__(self):
        self.begun += 1
        for number in range(self._batches):
            self._clock.sleep(self._load_s)
            yield torch.full((4,), float(number))


def measure(step_s, load_s=0.03, batches=1000, **options):
    clock = FakeClock(0.0)
    loader = Timed(clock, batches, load_s)
    return pipeprof.headspace(loader, lambda batch: clock.sleep(step_s), clock=clock, **options)


def test_the_gain_is_what_loading_takes():
    found = measure(step_s=0.01, load_s=0.03)
    assert found.gain == pytest.approx(4)
    assert found.samples_per_s == pytest.approx(4 / 0.04)
    assert found.free_samples_per_s == pytest.approx(4 / 0.01)
    assert found.gain_interval == pytest.approx((4, 4))


def test_where_loading_takes_no_time_there_is_nothing_to_gain():
    assert measure(step_s=0.01, load_s=0.0).gain == pytest.approx(1)


def test_both_sides_get_half_of_the_time():
    found = measure(step_s=0.01, load_s=0.01, seconds=8.0)
    assert found.batches == pytest.approx(4.0 / 0.02, abs=2)
    assert found.free_batches == pytest.approx(4.0 / 0.01, abs=3)


def test_slow_steps_are_measured_on_a_few_batches_all_the_same():
    found = measure(step_s=5.0, seconds=1.0)
    assert (found.batches, found.free_batches) == (10, 20)


def test_a_loader_that_ends_is_begun_again():
    assert measure(step_s=0.01, batches=3).batches > 100


def test_what_is_kept_is_bounded_in_number_and_in_bytes():
    assert measure(step_s=0.01, keep=5).kept_batches == 5
    # 16 bytes a batch
    assert measure(step_s=0.01, keep_bytes=40).kept_batches == 3


def test_the_step_gets_the_loaders_first_batches_again():
    clock, seen = FakeClock(0.0), []

    def step(batch):
        seen.append(int(batch[0]))
        clock.sleep(0.01)

    pipeprof.headspace(Timed(clock), step, keep=2, seconds=0.1, clock=clock)
    assert seen[:12] == [0, 1] + [0, 1] * 5


def test_an_empty_loader_is_refused():
    with pytest.raises(UsageError, match="yielded no batch"):
        pipeprof.headspace([], lambda batch: None)


def test_it_says_so_in_a_sentence():
    text = str(measure(step_s=0.01, load_s=0.03))
    assert text.startswith("If data were free: 4.00× (4.00–4.00), 400 instead of 100 samples/s")


class Slow(Dataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        time.sleep(0.005)
        return index


@pytest.mark.timed
def test_what_workers_made_beforehand_does_not_flatter_the_loader():
    """Two real workers take 20 ms for a batch of 4 samples, and the step takes no time."""
    loader = DataLoader(Slow(), batch_size=4, num_workers=2)
    found = pipeprof.headspace(loader, lambda batch: None, seconds=1.0)
    assert found.samples_per_s < 1.1 * 2 / 0.005
    assert found.gain > 3
