"""How many samples a batch holds, and of how many tensors it is made."""

import math

import numpy as np
import pytest
import torch

from pipeprof.loaders.batches import count_samples, weigh
from pipeprof.loaders.tensors import Batch, Ragged


@pytest.mark.parametrize(
    ("batch", "count"),
    [
        (torch.zeros(8, 3), 8),
        (np.zeros((5, 2)), 5),
        (torch.tensor(1.0), 1),
        ([torch.zeros(8, 3), torch.zeros(8)], 8),
        ((torch.zeros(8, 3), torch.zeros(8)), 8),
        ({"x": torch.zeros(4), "y": torch.zeros(4)}, 4),
        ({"x": {"inner": torch.zeros(6)}}, 6),
        (["a", "b", "c"], 3),
        ([1, 2], 2),
        ([], 0),
        ({}, 0),
        ("text", 1),
        (object(), 1),
    ],
)
def test_by_its_shape(batch, count):
    assert count_samples(batch) == count


def test_the_batch_size_tells_samples_from_parts():
    images = [torch.zeros(3, 10, 10) for _ in range(4)]
    assert count_samples(images, batch_size=4) == 4
    assert count_samples([torch.zeros(32, 5), torch.zeros(32)], batch_size=32) == 32


@pytest.mark.parametrize(
    ("batch", "weight"),
    [
        (torch.zeros(4, 8), (1, 128)),
        ([torch.zeros(4), {"x": torch.zeros(2, dtype=torch.int8)}], (2, 18)),
        (Ragged(torch.zeros(3), torch.zeros(2, dtype=torch.int64)), (2, 28)),
        (Batch(x=torch.zeros(4), y=torch.zeros(4)), (1, 32)),
        ([list(range(1000)) for _ in range(300)], (0, 0)),
        (["text", b"bytes", None], (0, 0)),
        ("text", (0, 0)),
        (None, (0, 0)),
    ],
)
def test_a_batch_is_weighed_by_the_tensors_that_travel(batch, weight):
    assert weigh(batch) == weight


def test_a_batch_of_too_many_parts_is_not_looked_through():
    assert all(map(math.isnan, weigh([(None,)] * 100_000)))
