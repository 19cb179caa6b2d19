"""Tensors in memory that are indexed one by one: found, and cured by what is advised."""

from __future__ import annotations

import re
from time import process_time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import pipeprof
from tests.findings.known import codes, text_of

ROWS, BATCH = 20_000, 128
TENSORS = torch.randn(ROWS, 32), torch.arange(ROWS)


class AtOnce(TensorDataset):
    """As advised."""

    def __getitems__(self, indices):
        places = torch.tensor(indices)
        return [tensor.index_select(0, places) for tensor in self.tensors]


class Mine(Dataset):
    """A user's own, which counts what is asked of it."""

    def __init__(self):
        self.rows, self.asked = TENSORS[0], 0

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        self.asked += 1
        return self.rows[index]


def as_it_is(batch):
    return batch


def drawn(data, **options):
    """All batches, by a loop without a step, and the CPU time of each."""
    loader = pipeprof.wrap(DataLoader(data, BATCH, shuffle=True, **options))
    began = process_time()
    batches = sum(1 for _ in loader)
    batch_s = (process_time() - began) / batches
    return loader.profile(), batch_s  # what the profile takes is none of it


@pytest.mark.timed
def test_a_tensor_data_set_is_faster_as_advised():
    before, before_s = drawn(TensorDataset(*TENSORS))
    after, after_s = drawn(AtOnce(*TENSORS), collate_fn=as_it_is)
    text = text_of(before, "no-getitems")
    assert "TensorDataset holds its data in memory" in text
    promised = re.search(r"([\d.]+)× as fast", text)
    assert promised is not None
    assert float(promised[1]) > 2
    assert before_s / after_s > 2, "picking indices, and our hooks, cost as much as before"
    assert "no-getitems" not in codes(after)


def test_the_code_of_a_users_data_set_is_not_called():
    data = Mine()
    profile, _ = drawn(data)
    text = text_of(profile, "no-getitems")
    assert data.asked == ROWS
    assert "Mine holds its data in memory" in text
    assert "was not measured: pipeprof does not call your data set" in text
    assert "as fast" not in text


def test_a_part_of_a_tensor_data_set_is_one():
    profile, _ = drawn(Subset(TensorDataset(*TENSORS), range(ROWS)))
    assert "as fast" in text_of(profile, "no-getitems")


class Normalised(Dataset):
    """Holds the mean of its columns, no data."""

    def __init__(self):
        self.mean = torch.zeros(3)

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return self.mean + index


class Forwards(Mine):
    """Whoever it forwards to may have ``__getitems__``."""

    def __getattr__(self, name):
        raise AttributeError(name)


class Heavy(Mine):
    """Indexing is the least of it."""

    def __len__(self):
        return 2_000

    def __getitem__(self, index):
        began = process_time()
        while process_time() - began < 0.0005:
            pass
        return super().__getitem__(index)


@pytest.mark.parametrize("data", [Normalised, Forwards, Heavy])
def test_other_data_sets_are_not_spoken_of(data):
    profile, _ = drawn(data())
    assert "no-getitems" not in codes(profile)
