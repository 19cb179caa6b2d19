"""The ranks of made-up jobs whose answer is known: who is last, for what, and what a cure gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pytest

from pipeprof.analyze.job.rank_steps import RankSteps
from pipeprof.analyze.job.verdict import job_of
from pipeprof.model import BatchLog, JobPlace, LoaderConfig, Profile, TrainingJob
from tests.comparisons import drawn

STEPS = 400
STEP_S = 0.010
RANDOM = np.random.default_rng(7)

Times = npt.NDArray[np.float64]


def some(mean_s: float, ranks: int = 4, jitter: float = 0.2) -> Times:
    """Return times with a little jitter. [ranks, steps]"""
    return mean_s * (1 + jitter * RANDOM.uniform(-1, 1, (ranks, STEPS)))


def job(
    waits_s: Times,
    own_steps_s: Times,
    hosts: str = "aaaa",
    cause: str = "decode_s",
    worker_s: Mapping[int, float] = MappingProxyType({}),
) -> TrainingJob:
    """Return the job of ranks that wait for batches and compute as given, and for each other.

    The clock of each rank is an hour behind that of the one before. Those of ``worker_s`` load in
    one worker, which needs this time for a batch.
    """
    ends_s = np.cumsum((waits_s + own_steps_s).max(axis=0))
    profiles = [
        of_rank(rank, 3600.0 * rank + np.concatenate(([0.0], ends_s)), wait_s, hosts[rank], cause)
        for rank, wait_s in enumerate(waits_s)
    ]
    for rank, made_s in worker_s.items():
        log, config = profiles[rank].batches, LoaderConfig(1)
        begins_s = tuple(end - made_s for end in log.fetch_end_s)
        profiles[rank] = replace(
            profiles[rank], batches=replace(log, fetch_start_s=begins_s), config=config
        )
    return job_of([RankSteps.of(each, f"rank{rank}.json") for rank, each in enumerate(profiles)])


def of_rank(rank: int, moments_s: Times, wait_s: Times, host: str, cause: str) -> Profile:
    """Return the profile of a rank that loads in its main process."""
    asked, done, count = moments_s[:-1], moments_s[1:], len(wait_s)
    columns = {
        "index": np.arange(count), "epoch": np.zeros(count, int), "nth": np.arange(count),
        "epoch_batches": np.full(count, count), "worker": np.full(count, -1),
        "samples": np.full(count, 32), "asked_s": asked, "delivered_s": asked + wait_s,
        "done_s": done, "fetch_start_s": asked, "fetch_end_s": asked + wait_s, cause: wait_s,
    }  # fmt: skip
    plain = drawn(rank, batches=40)
    environment = replace(
        plain.environment, rank=rank, host=host, job=JobPlace("torchrun", rank, world_size=4)
    )
    log = BatchLog(**{name: tuple(column.tolist()) for name, column in columns.items()})
    blame = {"decode": 1.0, "read": 0.5}  # a single cause would stand for all
    return replace(plain, environment=environment, batches=log, config=LoaderConfig(0), blame=blame)


def gains(found: TrainingJob) -> dict[str, float]:
    return {f"{cure.of} {cure.name}".strip(): cure.gain for cure in found.cures}


def test_a_rank_that_is_always_last():
    waits_s = some(0.001)
    waits_s[2] = some(0.011, 1)
    found = job(waits_s, some(STEP_S, jitter=0.02))
    assert (found.verdict, found.straggling, found.ranks[0].rank) == ("starved", "rank", 2)
    assert found.ranks[0].last_share > 0.95
    assert found.starved_fraction == pytest.approx(11 / 21, abs=0.03)
    assert found.blame["decode"] == pytest.approx(1.0)
    assert gains(found)["rank 2"] == pytest.approx(21 / 11 - 1, abs=0.1)
    assert "Rank 2 is to be cured first" in found.headline
    assert "mostly for decode" in found.headline
    assert max(one.starved_fraction for one in found.ranks) < 1


@pytest.mark.parametrize("exact", [True, False])
def test_a_rank_that_waits_for_another_loader_in_its_steps(exact):
    """It takes batches from two loaders in each step, and this is the profile of one of them."""
    waits_s, steps_s = some(0.001, ranks=2), some(STEP_S, ranks=2, jitter=0.02)
    others_s = some(0.011, ranks=1)[0]
    ends_s = np.cumsum((waits_s[1] + others_s) + steps_s.max(axis=0))
    moments_s = np.concatenate(([0.0], ends_s))
    first, second = (of_rank(rank, moments_s, waits_s[rank], "a", "decode_s") for rank in (0, 1))
    batches = replace(second.batches, others_s=tuple(others_s.tolist()))
    blame = {"other-loaders": 0.9, "decode": 0.1}
    second = replace(second, batches=batches, blame=blame)
    found = job_of([RankSteps.of(each, f"{each}", exact) for each in (first, second)])
    assert (found.straggling, found.ranks[0].rank) == ("rank", 1)
    assert found.starved_fraction == pytest.approx(12 / 22, abs=0.03)
    assert found.blame["other-loaders"] > 0.8


def test_a_rank_whose_only_worker_sets_the_pace():
    """The longer it computes, the shorter it waits, and so does a rank that waits for others."""
    own_steps_s, waits_s = some(STEP_S, jitter=0.3), some(0.001, jitter=0.5)
    waits_s[1] = 0.025 - own_steps_s[1]
    found = job(waits_s, own_steps_s, worker_s={1: 0.025})
    assert (found.straggling, found.ranks[0].rank) == ("rank", 1)
    assert found.starved_fraction == pytest.approx(15 / 25, abs=0.03)


def test_a_late_batch_of_now_one_and_now_another():
    """Each rank waits long for one batch in twenty, so nearly a fifth of the steps are late."""
    waits_s = some(0.001)
    late = RANDOM.random(waits_s.shape) < 0.05
    waits_s[late] = 0.030
    found = job(waits_s, some(STEP_S, jitter=0.02))
    assert (found.verdict, found.straggling) == ("starved", "turns")
    expected = late.any(axis=0).mean() * 0.030 / ((waits_s.max(axis=0) + STEP_S).mean())
    assert found.starved_fraction == pytest.approx(expected, abs=0.08)
    without = (waits_s.max(axis=0) + STEP_S).mean() / 0.011 - 1
    assert gains(found)["tails"] == pytest.approx(without, rel=0.2)
    assert max(gain for name, gain in gains(found).items() if name.startswith("rank")) < (
        0.6 * gains(found)["tails"]
    ), "to cure one rank of four is worth little"
    assert "No rank is always the last" in found.headline


def test_the_last_of_many_ranks_whose_batches_are_late_now_and_then():
    """They are late while all wait for it anyway. None of them ever makes a step by itself."""
    ranks = 64
    waits_s = some(0.001, ranks)
    waits_s[RANDOM.random(waits_s.shape) < 0.02] = 0.020
    waits_s[40] += 0.040
    found = job(waits_s, some(STEP_S, ranks, jitter=0.02), hosts="a" * ranks)
    assert (found.straggling, found.ranks[0].rank) == ("rank", 40)
    assert found.ranks[0].last_share > 0.95
    assert found.starved_fraction == pytest.approx(41 / 51, abs=0.03)


def test_a_few_late_batches_of_one_rank_are_chance():
    """Of six late batches in all, four are of rank 0, and none of them in the last third."""
    waits_s = some(0.001)
    waits_s[0, [20, 60, 150, 200]] = 0.4
    waits_s[1, [300, 350]] = 0.4
    assert job(waits_s, some(STEP_S, jitter=0.02)).straggling == "turns"


def test_a_rank_that_became_slow_is_named():
    waits_s = some(0.001)
    waits_s[2, 2 * STEPS // 3 :] = 0.030
    assert job(waits_s, some(STEP_S, jitter=0.02)).straggling == "rank"


def test_a_rank_whose_step_is_slow_is_not_blamed_for_its_loading():
    """It waits no longer than the others for batches, and they wait for it within their steps."""
    own_steps_s = some(STEP_S, jitter=0.02)
    own_steps_s[1] *= 3
    found = job(some(0.0008), own_steps_s)
    assert found.verdict == "fed"
    assert found.starved_fraction < 0.05


def test_a_rank_that_loads_slowly_while_another_computes_longer_holds_nobody_up():
    own_steps_s, waits_s = some(STEP_S, jitter=0.02), some(0.0005)
    own_steps_s[1] *= 3
    waits_s[0] = some(0.010, 1)
    found = job(waits_s, own_steps_s)
    assert found.verdict == "fed"
    assert gains(found).get("rank 0", 0.0) < 0.02


def test_ranks_that_all_wait():
    found = job(some(0.010, jitter=0.05), some(STEP_S, jitter=0.02), cause="read_s")
    assert (found.verdict, found.straggling) == ("starved", "all")
    assert found.blame["read"] == pytest.approx(1.0)
    assert gains(found)["loading"] == pytest.approx(1.0, abs=0.1)
    assert "All ranks wait at the same time" in found.headline


def test_the_ranks_of_one_host():
    waits_s = some(0.001)
    waits_s[2:] = some(0.011, 2)
    found = job(waits_s, some(STEP_S, jitter=0.02), hosts="aabb")
    assert (found.straggling, found.ranks[0].host) == ("host", "b")
    assert gains(found)["host b"] == pytest.approx(21 / 11 - 1, abs=0.15)
    assert gains(found).get("rank 2", 0.0) < 0.2, "the other one is still slow"
    assert "The ranks of b are to be cured first" in found.headline


def test_no_rank_is_faster_than_its_workers_once_the_slow_one_is_cured():
    """While it waited for rank 1, rank 0 had all the time for its batches of 15 ms."""
    waits_s = np.array([[0.0] * STEPS, [0.010] * STEPS])
    moments_s = np.arange(STEPS + 1) * 0.020
    slow, other = (
        of_rank(rank, moments_s, wait, "a", "decode_s") for rank, wait in enumerate(waits_s)
    )
    log = replace(slow.batches, worker=(0,) * STEPS,
                  fetch_start_s=tuple(moments_s[:-1] - 0.04),
                  fetch_end_s=tuple(moments_s[:-1] - 0.025))  # fmt: skip
    busy = replace(slow, batches=log, config=LoaderConfig(1, prefetch_factor=2))
    found = job_of([RankSteps.of(busy, "a"), RankSteps.of(other, "b")])
    assert gains(found)["rank 1"] == pytest.approx(20 / 15 - 1, abs=0.02)


def test_missing_ranks_are_named_and_too_few_steps_decide_nothing():
    waits_s, own_steps_s = some(0.010, ranks=3), some(STEP_S, ranks=3)
    found = job(waits_s, own_steps_s, hosts="aaa")
    assert (found.world_size, found.missing) == (4, (3,))
    assert "1 rank of 4 left no profile: 3." in found.notes[0]
    few = job(waits_s[:, :12], own_steps_s[:, :12], hosts="aaa")
    assert (few.verdict, few.steps) == ("inconclusive", 6)


def test_profiles_without_a_common_step():
    waits_s = some(0.010, ranks=2)
    moments_s = np.arange(STEPS + 1) * 0.020
    one, other = (of_rank(rank, moments_s, waits_s[rank], "a", "decode_s") for rank in (0, 1))
    apart = replace(other, batches=replace(other.batches, epoch=(7,) * STEPS))
    found = job_of([RankSteps.of(one, "a"), RankSteps.of(apart, "b")])
    assert (found.verdict, found.steps, found.ranks, found.cures) == ("inconclusive", 0, (), ())
    assert "have no step in common" in found.headline


def test_a_rank_whose_loop_was_not_seen_waiting_leaves_the_verdict_open():
    waits_s = some(0.010, ranks=2)
    moments_s = np.arange(STEPS + 1) * 0.020
    ranks = [of_rank(rank, moments_s, waits_s[rank], "a", "decode_s") for rank in (0, 1)]
    ahead = replace(ranks[1], diagnosis=replace(ranks[1].diagnosis, unjudged="taken-ahead"))
    found = job_of([RankSteps.of(ranks[0], "a"), RankSteps.of(ahead, "b")])
    assert (found.verdict, found.unjudged, found.cures) == ("inconclusive", "taken-ahead", ())
    assert "Wrap what the loop takes them from: iter(loader)" in found.headline


def test_the_map_shows_for_whose_batches_the_job_waited_and_when():
    waits_s = some(0.0001)
    waits_s[3, STEPS // 2 :] = 0.010
    found = job(waits_s, some(STEP_S, jitter=0.02)).map
    assert [row.name for row in found.rows] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    late = np.array(found.rows[3].late_s) / np.array(found.parts_s)
    assert late[: len(late) // 2 - 1].max() < 0.05
    assert late[len(late) // 2 + 1 :].min() > 0.4


@pytest.mark.parametrize(
    ("ranks", "of_host", "rows", "first"),
    [
        (32, 8, 32, "rank 0"),
        (40, 8, 5, "host0"),
        (40, 40, 1, "host0"),
        (300, 2, 50, "host0 – host2"),
    ],
)
def test_the_ranks_of_a_host_share_a_row_where_there_are_many(ranks, of_host, rows, first):
    steps = [
        rank_steps(rank, f"host{rank // of_host}", np.full(STEPS, 0.001)) for rank in range(ranks)
    ]
    found = job_of(steps).map
    assert (len(found.rows), found.rows[0].name) == (rows, first)
    assert sum(row.ranks for row in found.rows) == ranks
    assert sum(found.parts_s) == pytest.approx((STEPS - 8) * 0.011), "without warm-up"


def rank_steps(rank: int, host: str, wait_s: Times) -> RankSteps:
    """Return the steps of a rank that waits so long for each batch, and then computes."""
    ends_s = np.cumsum(np.concatenate(([0.0], wait_s + STEP_S)))
    return RankSteps.of(of_rank(rank, ends_s, wait_s, host, "decode_s"), f"{rank}.json", False)


def test_where_steps_are_not_charged_one_by_one_the_blame_of_the_profile_counts():
    waits_s = np.full(STEPS, 0.010)
    steps = [rank_steps(rank, "host", waits_s) for rank in (0, 1)]
    assert job_of(steps).blame == pytest.approx({"decode": 2 / 3, "read": 1 / 3})


@pytest.mark.parametrize(
    ("cores", "says"),
    [
        (((0, 1), (0, 1)), None),
        (((0, 1), (2, 3)), None),
        (((0,), (0,)), "The ranks 0, 1 on host may all run on the same 1 core:"),
        (((0, 1, 2), (2, 3), (4, 5)), "The ranks 0, 1 on host may all run on the same 1 core:"),
    ],
    ids=["all cores for all", "cores of their own", "one core for two", "an overlap"],
)
def test_ranks_that_are_bound_to_the_same_cores_are_named(cores, says):
    steps = [
        replace(rank_steps(rank, "host", np.full(STEPS, 0.001)), cores=each)
        for rank, each in enumerate(cores)
    ]
    notes = [note for note in job_of(steps).notes if "core" in note]
    assert [note.startswith(says) for note in notes] == ([True] if says else [])


def test_the_slowest_rank_of_a_slow_host_is_not_named_as_its_cure_gives_little():
    """Both ranks of host b load slowly, and rank 3 a little more slowly than rank 2."""
    waits_s = some(0.001, jitter=0.02)
    waits_s[2], waits_s[3] = some(0.010, 1, 0.02)[0], some(0.011, 1, 0.02)[0]
    found = job(waits_s, some(STEP_S, jitter=0.02), "aabb")
    assert found.ranks[0].rank == 3
    assert found.ranks[0].stall_share > 0.9
    assert found.straggling == "host"
    assert gains(found)["rank 3"] < 0.5 * gains(found)["host b"]
    assert "The ranks of b are to be cured first" in found.headline
