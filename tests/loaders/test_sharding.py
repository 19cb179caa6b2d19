"""Splits divided among ranks and workers."""

import pytest

from pipeprof.errors import UsageError
from pipeprof.loaders.dataset.sharding import find_rank, share_of, shuffled


@pytest.mark.parametrize("splits", [0, 1, 3, 7, 24])
@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_nothing_is_lost_and_nothing_repeated(splits, world, workers):
    seen = []
    for rank in range(world):
        for worker in range(workers):
            seen += share_of(range(splits), rank, world, worker, workers)
    assert sorted(seen) == list(range(splits))


def test_few_splits_go_to_different_ranks():
    """Of two splits each of two ranks with four workers reads one."""
    for rank in range(2):
        mine = [list(share_of(range(2), rank, 2, worker, 4)) for worker in range(4)]
        assert mine == [[rank], [], [], []]


def test_an_order_belongs_to_its_seed_and_epoch():
    items = list(range(50))
    assert shuffled(items, 1, 0) == shuffled(items, 1, 0)
    assert shuffled(items, 1, 0) != shuffled(items, 1, 1)
    assert shuffled(items, 1, 0) != shuffled(items, 2, 0)
    assert sorted(shuffled(items, 1, 0)) == items


def test_the_rank_is_given_or_torchruns_or_none(monkeypatch):
    assert find_rank(1, 3) == (1, 3)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert find_rank(None, None) == (2, 4)
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    assert find_rank(None, None) == (0, 1)


@pytest.mark.parametrize(("rank", "world"), [(1, None), (None, 2), (2, 2), (-1, 1)])
def test_contradictory_ranks_are_refused(rank, world):
    with pytest.raises(UsageError, match="rank"):
        find_rank(rank, world)


def test_a_garbled_environment_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(UsageError, match="whole numbers"):
        find_rank(None, None)
