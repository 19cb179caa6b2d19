"""Requests of a loader's data set are counted exactly, in all kinds of workers and without
workers."""

import time

import fsspec
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.measure.requests import note_request, pending_notes


class Store(fsspec.AbstractFileSystem):
    protocol = "counted"
    cachable = False

    def cat_file(self, path, start=None, end=None, **options):
        if path == "missing":
            raise FileNotFoundError(path)
        time.sleep(0.001)
        return bytes(end - start)


class Objects(Dataset):
    """Sample i requests i + 1 ranges of 100 · (i + 1) bytes, and one object that does not exist."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        store, size = Store(), 100 * (index + 1)
        for _ in range(index + 1):
            store.cat_file("object", 0, size)
        try:
            store.cat_file("missing", 0, size)
        except FileNotFoundError:
            return torch.tensor(size)


COUNT = sum(range(1, 9))
BYTES = sum(100 * number * number for number in range(1, 9))


def check(profile, epochs):
    requests = profile.requests
    assert (requests.count, requests.bytes) == (epochs * COUNT, epochs * BYTES)
    assert requests.errors == epochs * 8
    assert (requests.retries, requests.throttled, requests.lost) == (0, 0, 0)
    assert requests.size.mean == BYTES / COUNT
    assert requests.size.p99 == pytest.approx(800, rel=0.035)
    assert requests.latency_s.p50 >= 0.001 * 0.965
    assert 0 < requests.at_once <= 1
    assert 0 < requests.client_share < 1.5
    assert not pending_notes


@pytest.mark.parametrize(
    "settings",
    [
        {"num_workers": 0},
        {"num_workers": 2},
        pytest.param(
            {"num_workers": 1, "multiprocessing_context": "spawn"}, marks=pytest.mark.slow
        ),
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 2, "in_order": False},
    ],
    ids=["inline", "fork", "spawn", "persistent", "any order"],
)
def test_each_request_of_each_worker_and_epoch_is_counted_once(settings):
    epochs = 1 if "multiprocessing_context" in settings else 3
    loader = pipeprof.wrap(DataLoader(Objects(), batch_size=2, **settings))
    for _ in range(epochs):
        for _batch in loader:
            pass
    check(loader.profile(), epochs)


def test_two_loaders_that_take_turns_have_each_its_own():
    one, other = (pipeprof.wrap(DataLoader(Objects(), batch_size=1)) for _ in range(2))
    for _pair in zip(one, other, strict=True):
        pass
    check(one.profile(), 1)
    check(other.profile(), 1)


def test_a_data_set_without_requests_has_none():
    loader = pipeprof.wrap(DataLoader([torch.zeros(1)] * 4))
    for _batch in loader:
        pass
    assert loader.profile().requests is None
    note_request(0.0, 0.0, 1.0, 1)
    assert not pending_notes, "nobody profiles any more"


def test_a_note_that_makes_no_sense_does_not_disturb_the_training():
    class Wrong(Objects):
        def __getitem__(self, index):
            note_request("soon", None, object(), "large")
            return super().__getitem__(index)

    loader = pipeprof.wrap(DataLoader(Wrong(), batch_size=2))
    assert len(list(loader)) == 4
    assert loader.profile().measured_batches == 3


def test_shards_of_our_own_data_set_are_counted_to_the_byte(tmp_path):
    rows = 5000
    (tmp_path / "rows.csv").write_text("a,b\n" + "1.5,2\n" * rows)
    size = (tmp_path / "rows.csv").stat().st_size
    dataset = pipeprof.open_dataset(str(tmp_path), batch_size=100)
    loader = pipeprof.wrap(DataLoader(dataset, batch_size=None, num_workers=1))
    for _batch in loader:
        pass
    requests = loader.profile().requests
    assert requests.errors == 0
    assert size <= requests.bytes <= size + 4096, "and no more than the look for the first row"
