"""Pathologies of data divided among workers and ranks, and of run after run over it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import pipeprof
from tests.findings.known import codes, text_of, tiny


class Shards(IterableDataset):
    """Worker n streams shard n, if there is one."""

    def __init__(self, shards: int, samples: int = 40) -> None:
        self.shards, self.samples = shards, samples

    def __iter__(self):
        info = get_worker_info()
        if (info.id if info else 0) < self.shards:
            yield from (tiny() for _ in range(self.samples))


@pytest.mark.parametrize(("shards", "idle"), [(1, 1), (2, 0)])
def test_workers_for_which_there_is_no_shard(shards, idle):
    loader = pipeprof.wrap(DataLoader(Shards(shards), 1, num_workers=2), whole=True)
    list(loader)
    if not idle:
        assert "workers-without-data" not in codes(loader.profile())
        return
    text = text_of(loader.profile(), "workers-without-data")
    assert f"{idle} of 2 workers delivered no batch" in text
    assert f"num_workers={shards} instead of 2" in text


class Split(Shards):
    """As `datasets.distributed.split_dataset_by_node` leaves a data set of Hugging Face."""

    def __init__(self, shards: int, ranks: int) -> None:
        super().__init__(shards)
        self.num_shards, self._distributed = shards, SimpleNamespace(rank=0, world_size=ranks)


class IterableDatasetShard(Shards):
    """As Accelerate names what it makes of an iterable data set."""

    num_processes = 2


@pytest.mark.parametrize(
    ("dataset", "evidence"),
    [
        (Split(3, 2), "Each of 2 ranks reads all of it"),
        (Split(4, 2), None),
        (IterableDatasetShard(1), "Each of 2 ranks"),
        (Shards(1), None),
    ],
)
def test_a_data_set_of_which_every_rank_reads_all(dataset, evidence):
    loader = pipeprof.wrap(DataLoader(dataset, 1))
    list(loader)
    found = {each.code: each.evidence for each in loader.profile().findings}
    assert found.get("every-rank-reads-all", "").startswith(evidence or "")
    assert ("every-rank-reads-all" in found) == (evidence is not None)


class DataLoaderDispatcher:
    """As Accelerate's: every rank starts the workers, and rank 0 takes the batches of all."""

    def __init__(self, loader, rank: int, ranks: int) -> None:
        self.base_dataloader = loader
        self.state = SimpleNamespace(process_index=rank, num_processes=ranks)

    def __iter__(self):
        batches = self.base_dataloader.__iter__()
        if self.state.process_index == 0:
            yield from batches


@pytest.mark.parametrize(
    ("rank", "ranks", "evidence"),
    [(0, 2, "Rank 0 builds the batches of 2 ranks"), (1, 2, "This rank is sent its part"),
     (0, 1, None)],
)  # fmt: skip
def test_batches_that_rank_0_reads_for_all(rank, ranks, evidence):
    loader = pipeprof.wrap(DataLoader(Growing(0.0), 1))
    for _ in DataLoaderDispatcher(loader, rank, ranks):
        time.sleep(0.001)  # less than a sample takes
    profile = loader.profile()
    if evidence is None:
        assert "rank-0-reads-for-all" not in codes(profile)
        return
    assert evidence in text_of(profile, "rank-0-reads-for-all")
    found = {each.code for each in profile.findings}
    assert rank == 0 or found == {"rank-0-reads-for-all"}
    assert ("profile of rank 0" in profile.diagnosis.headline) == (rank == 1)


class Growing(Dataset):
    """Slower by ``more_s`` in each epoch, as a list is that is searched for each sample."""

    def __init__(self, more_s: float) -> None:
        self.more_s, self.calls = more_s, 0

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> torch.Tensor:
        self.calls += 1
        time.sleep(0.002 + self.calls // 20 * self.more_s)
        return tiny()


def test_epochs_that_become_slower_and_slower():
    loader = pipeprof.wrap(DataLoader(Growing(0.001)))
    for _ in range(8):
        list(loader)
    assert "Over 8 epochs, the rate fell" in text_of(loader.profile(), "slower-each-epoch")


@pytest.mark.parametrize("samples", [8, 400])
def test_epochs_that_begin_with_an_empty_queue(samples):
    data = Growing(0.0)
    bare = DataLoader(
        torch.utils.data.Subset(data, [0] * samples), 1, num_workers=1, persistent_workers=True,
        collate_fn=lambda each: time.sleep(0.03 if samples == 8 else 0.0005) or each[0],
    )  # fmt: skip
    loader = pipeprof.wrap(bare, whole=True)
    for _ in range(4):
        list(loader)
    found = codes(loader.profile())
    bare._iterator._shutdown_workers()
    assert ("epoch-drain" in found) == (samples == 8)


class Cached(Growing):
    """A data set whose cache holds so much as an epoch begins, as MosaicML Streaming's is."""

    def __init__(self, limit: int, held: int) -> None:
        super().__init__(0.0)
        shard = SimpleNamespace(get_raw_size=lambda: 100, get_max_size=lambda: 100)
        self.shards, self.cache_limit, self.cache_usage = [shard] * 4, limit, held
        self.streams = [SimpleNamespace(remote="s3://bucket/data", get_index_size=lambda: 0)]
        self._unique_rank_world = SimpleNamespace(num_nodes=1)


@pytest.mark.parametrize(
    ("limit", "held", "taken", "found"),
    [(300, 200, [20, 20], True), (450, 400, [20, 20], False), (500, 200, [20, 20], False),
     (300, 200, [5, 20], False), (300, 200, [20], False)],
    ids=["evicts", "holds all", "is large enough", "no complete epoch yet", "one epoch"],
)  # fmt: skip
def test_a_cache_that_evicts_what_the_next_epoch_needs(limit, held, taken, found):
    loader = pipeprof.wrap(DataLoader(Cached(limit, held), 1))
    for count in taken:
        for number, _ in enumerate(loader, start=1):
            if number == count < 20:
                break
    profile = loader.profile()
    assert ("full-cache" in codes(profile)) == found
    assert not found or "at least 200 B again" in text_of(profile, "full-cache")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterator_for_each_batch(workers):
    loader = pipeprof.wrap(DataLoader([tiny()] * 40, 4, shuffle=True, num_workers=workers))
    for _ in range(12):
        next(iter(loader))
        time.sleep(0.002)
    profile = loader.profile()
    text = text_of(profile, "iterator-per-batch")
    assert "Each of 12 iterators gave one batch" in text
    assert ("1 worker began to fetch batches that nobody took" in text) == bool(workers)
    assert "batches = iter(loader)" in text
    (advice,) = profile.recommendations
    assert (advice.setting, advice.proposed) == ("iterator", "one for each epoch")
    diagnosis = profile.diagnosis
    assert (diagnosis.verdict, diagnosis.unjudged) == ("inconclusive", "iterator-per-batch")
    assert diagnosis.headline.startswith("Inconclusive: the loop makes a new iterator")
    assert "worker-start-up-each-epoch" not in codes(profile)


@pytest.mark.parametrize("take", [2, None])
def test_epochs_that_are_short_or_left_are_epochs(take):
    loader = pipeprof.wrap(DataLoader([tiny()] * (4 if take is None else 40), 4))
    for _ in range(12):
        for number, _ in enumerate(loader, 1):
            if number == take:
                break
    assert "iterator-per-batch" not in codes(loader.profile())
