"""Accelerate on two real ranks: rank 0 reads for all, or each rank reads all of it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.environments import warm
from tests.support.env import UNWATCHED

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(600)]
SCRIPT = Path(__file__).with_name("accelerate_ranks.py")
DISPATCH, ALL = "rank-0-reads-for-all", "every-rank-reads-all"


@cache
def ranks(*arguments: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What each of two ranks says at the end of the script."""
    python = warm("main", "accelerate")
    said = python.run_ranks([str(SCRIPT), *arguments], 2, SCRIPT.parent, UNWATCHED)
    assert [done.returncode for done in said] == [0, 0], [done.stderr[-2000:] for done in said]
    lines = [line for done in said for line in done.stdout.splitlines() if line.startswith("{")]
    first, second = map(json.loads, lines)
    assert (first["rank"], second["rank"]) == (0, 1)
    return first, second


def profile_of(answer: dict[str, Any]) -> dict[str, Any]:
    (profile,) = answer["profiles"].values()
    return dict(profile)


def texts(answer: dict[str, Any]) -> dict[str, str]:
    """The evidence of each finding."""
    return {each["code"]: each["evidence"] for each in profile_of(answer)["findings"]}


@pytest.mark.parametrize("how", ["wrap", "callback"])
@pytest.mark.parametrize("kind", ["map", "stream"])
def test_rank_0_reads_for_all(kind: str, how: str) -> None:
    first, second = ranks(kind, "dispatch", how)
    assert [each["samples"] for each in (first, second)] == [
        each["samples"] for each in ranks(kind, "dispatch", "plain")
    ]
    assert profile_of(first)["diagnosis"]["verdict"] == "starved"
    assert texts(first)[DISPATCH].startswith("Rank 0 builds the batches of 2 ranks: ")
    assert "only rank 0 takes batches from its loader" in texts(second)[DISPATCH]
    assert "rank 0 reads the batches of this rank" in profile_of(second)["diagnosis"]["headline"]
    assert "too-few-batches" not in texts(second), "a longer run would show no more"


def test_each_rank_reads_its_own_and_the_training_is_faster() -> None:
    """Workers sleep, so that twice as many read twice as much, also on few cores."""
    before, after = ranks("map", "dispatch", "wrap"), ranks("map", "each", "wrap")
    assert all(DISPATCH not in texts(answer) for answer in after)
    assert after[0]["rate"] > 1.3 * before[0]["rate"]
    assert sorted(before[0]["samples"] + before[1]["samples"]) == sorted(
        after[0]["samples"] + after[1]["samples"]
    )


@pytest.mark.parametrize("how", ["wrap", "callback"])
def test_a_stream_of_which_every_rank_reads_all(how: str) -> None:
    """Without dispatching, Accelerate's IterableDatasetShard skips what belongs to the others."""
    answers, before = ranks("stream", "each", how), ranks("stream", "dispatch", "wrap")
    for answer in answers:
        assert texts(answer)[ALL].startswith("Each of 2 ranks reads all of it")
        assert DISPATCH not in texts(answer)
        (epoch,) = profile_of(answer)["epochs"]
        assert epoch["batches"] * 4 == len(answer["samples"]) == 240
    # so the finding on dispatched batches must not promise more than it asks for
    assert answers[0]["rate"] < 1.25 * before[0]["rate"]
