"""Ranks agree through the job's store, and none waits for another."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import torch.distributed
from torch.distributed.distributed_c10d import PrefixStore

from pipeprof.loaders.tune.ranks import JobRanks, OneRank, RanksDisagree, find_ranks
from pipeprof.measure.clock import FakeClock

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this torch has no torch.distributed"
)


class Job:
    """Ranks in one process, with a clock that only the test moves."""

    def __init__(self, world: int) -> None:
        store = torch.distributed.HashStore()  # type: ignore[attr-defined]
        self.clock = FakeClock()
        self.ranks = [JobRanks(store, rank, world, self.clock) for rank in range(world)]
        self.answers: dict[int, Any] = {}

    def agree(self, *values: Any, least: int = 60) -> list[Any]:
        """Let each rank exchange its value; ``None`` where a rank does not take part."""
        open_rounds = {
            rank: self.ranks[rank].agree(value, sorted)
            for rank, value in enumerate(values)
            if value is not None
        }
        answers: dict[int, Any] = {}
        for _ in range(least):
            self.clock.sleep(1.0)
            for rank, one in [*open_rounds.items()]:
                if (answer := advance(one)) is not None:
                    answers[rank] = answer
                    del open_rounds[rank]
        return [answers.get(rank) for rank in range(len(values))]


def advance(one: Generator[None, Any, Any]) -> Any:
    """Return the result of ``one`` if it ends now."""
    try:
        next(one)
    except StopIteration as end:
        return end.value
    return None


def test_all_ranks_get_what_rank_0_makes_of_all_values() -> None:
    job = Job(3)
    assert job.agree(3, 1, 2) == [[1, 2, 3]] * 3
    assert job.agree(6, 5, 4) == [[4, 5, 6]] * 3


def test_a_rank_that_does_not_answer_ends_the_search_of_the_others() -> None:
    job = Job(3)
    with pytest.raises(RanksDisagree, match=r"rank 1 did not answer for 120 s"):
        job.agree(3, None, 2, least=200)
    with pytest.raises(RanksDisagree, match="rank 1 did not answer"):
        job.agree(None, None, 2)


def test_a_rank_that_left_is_not_waited_for() -> None:
    job = Job(2)
    job.ranks[1].leave("the search of rank 1 failed")
    job.ranks[0].leave("the search of rank 0 failed: the search of rank 1 failed")  # for that
    with pytest.raises(RanksDisagree, match=r"^the search of rank 1 failed$"):
        job.agree(1, None)


def test_a_rank_sees_that_others_wait() -> None:
    job = Job(2)
    job.clock.sleep(1.0)
    assert not job.ranks[1].others_wait()
    next(job.ranks[0].agree(1, sorted))
    job.clock.sleep(1.0)
    assert job.ranks[1].others_wait()


def test_a_call_reaches_each_rank_once() -> None:
    job = Job(2)
    job.ranks[1].call()
    job.clock.sleep(1.0)
    assert [rank.called() for rank in job.ranks] == [True, True]
    job.clock.sleep(1.0)
    assert [rank.called() for rank in job.ranks] == [False, False]


def test_the_store_keeps_no_values_of_former_rounds() -> None:
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    rank = JobRanks(PrefixStore("job", store), 0, 1, clock := FakeClock())
    for number in range(20):
        clock.sleep(1.0)
        assert advance(rank.agree(number, sorted)) == [number]
    assert store.num_keys() < 20 * 2 + 3


def test_one_process_agrees_with_itself() -> None:
    alone = OneRank()
    assert advance(alone.agree(1, sorted)) == [1]
    assert not alone.others_wait()
    alone.call()
    assert (alone.called(), alone.called()) == (True, False)


def test_ranks_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(find_ranks("0"), OneRank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RanksDisagree, match="neither a process group nor torchrun's store"):
        find_ranks("0")
