"""How many samples a batch holds, and of how many tensors it is made."""

import math

import numpy as np
import pytest
import torch

from pipeprof.loaders.instrument.batch_size import batch_nbytes, count_samples
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
        (torch.zeros(4, 8), (1, 128, 0)),
        ([torch.zeros(4), {"x": torch.zeros(2, dtype=torch.int8)}], (2, 18, 0)),
        (Ragged(torch.zeros(3), torch.zeros(2, dtype=torch.int64)), (2, 28, 0)),
        (Batch(x=torch.zeros(4), y=torch.zeros(4), key="text"), (1, 32, 4)),
        ([list(range(100)) for _ in range(4)], (0, 0, 3200)),
        ({"image": torch.zeros(4), "key": ["one", "four"]}, (1, 16, 7)),
        ([torch.zeros(4), np.zeros((2, 3), np.float32), np.int16(3)], (1, 16, 26)),
        (["text", b"bytes", None], (0, 0, 17)),
        ([[], {}], (0, 0, 0)),
        ("text", (0, 0, 4)),
        (None, (0, 0, 8)),
    ],
)
def test_a_batch_is_weighed_by_the_tensors_that_travel_and_what_is_beside(batch, weight):
    assert batch_nbytes(batch) == weight


@pytest.mark.parametrize(
    "other",
    [object(), np.array([{}]), (3, torch.zeros(4)), [list(range(1000)) for _ in range(300)]],
    ids=["an object", "an array of objects", "a tensor behind a number", "too much of it"],
)
def test_what_has_no_known_size_is_unknown_and_hides_no_tensor(other):
    tensors, size, loose = batch_nbytes([torch.zeros(4), other])
    assert (tensors, size) == (1, 16)
    assert math.isnan(loose)


def test_a_batch_of_too_many_parts_is_not_looked_through():
    assert all(map(math.isnan, batch_nbytes([(None,)] * 100_000)))
