"""Ranks of one training, with a known difference: the slowest is named, and chance is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeprof.analyze.compare.ranks import rank_skew
from pipeprof.model import Profile
from tests.comparisons import drawn


def ranks(*decode_ms: float) -> list[Profile]:
    """A profile each, of which ``decode_ms`` differs."""
    return [
        of_rank(rank, drawn(rank, decode_ms=each, batches=2000, correlation=0.0))
        for rank, each in enumerate(decode_ms)
    ]


def of_rank(rank: int | None, profile: Profile, offset_s: float = 1e9) -> Profile:
    environment = replace(profile.environment, rank=rank)
    return replace(profile, environment=environment, unix_offset_s=offset_s)


@pytest.mark.parametrize(
    ("decode_ms", "slowest", "grade"),
    [(12.0, None, "even"), (12.9, None, "even"), (14.7, 2, "warning"), (24.0, 2, "critical")],
)
def test_the_slowest_is_named_from_a_tenth_on(decode_ms, slowest, grade):
    skew = rank_skew(ranks(12.0, 12.0, decode_ms, 12.0))
    assert skew is not None
    assert (skew.ranks, skew.rank, skew.grade) == (4, slowest, grade)
    if slowest is None:
        assert "4 ranks fetch equally fast" in skew.headline
        assert skew.headline.endswith("which is less than 10 %.")
    else:
        assert skew.fetch_s == pytest.approx((6 + decode_ms) / 1e3, rel=0.05)
        assert skew.others_s == pytest.approx(0.018, rel=0.05)


def test_it_is_told_with_what_it_does_to_the_others():
    fast, slow = ranks(12.0, 24.0)
    apart = rank_skew([fast, slow])
    assert apart is not None
    assert "% of the time, the others 45.1 %. Look at what differs there" in apart.headline
    shares = zip((fast, slow), (0.011, 0.402), strict=True)
    in_step = rank_skew([replace(each, throughput=fast.throughput,
                                 diagnosis=replace(each.diagnosis, starved_fraction=share))
                         for each, share in shares])  # fmt: skip
    assert in_step is not None
    assert in_step.headline.startswith("Of 2 ranks, rank 1 takes 29.8 ms to fetch a batch,")
    assert (
        "It waits for batches 40.2 % of the time, the others 1.1 %; the others" in in_step.headline
    )


def test_what_may_be_chance_is_not_told():
    """Two equal ranks that have drawn a dozen batches each."""
    few = [
        of_rank(rank, drawn(seed, batches=14, correlation=0.0)) for rank, seed in enumerate((3, 1))
    ]
    skew = rank_skew(few)
    assert skew is not None
    assert (skew.grade, skew.rank) == ("even", None)
    assert skew.headline.endswith(
        "takes 22 % longer for a batch than the others, which may be chance."
    )


def test_other_runs_are_no_ranks():
    fast, slow = ranks(12.0, 24.0)
    for runs in (
        [fast],
        [fast, of_rank(0, slow)],
        [fast, of_rank(None, slow)],
        [fast, replace(slow, name="other.py:7")],
        [fast, of_rank(1, slow, offset_s=2e9)],  # another day
        [fast, replace(slow, unix_offset_s=None)],
        [fast, replace(slow, batches=replace(slow.batches, asked_s=()))],
        [fast, replace(slow, stages={})],
    ):
        assert rank_skew(runs) is None
