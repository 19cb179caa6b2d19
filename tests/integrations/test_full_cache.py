"""MosaicML Streaming and LitData with a cache that is too small for their data, and without."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.environments import WITHOUT_CUDA, warm
from tests.support.env import UNWATCHED

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("full_cache.py")
SMALL, ENOUGH = 4_000_000, {"streaming": 13_300_000, "litdata": 19_300_000}
FIXES = {
    "streaming": "Set cache_limit to 13.2 MB or more",
    "litdata": "Set max_cache_size to 19.2 MB or more",
}


@cache
def trained(kind: str, limit: int) -> dict[str, Any]:
    """The seconds and downloads of each epoch, and the profile."""
    words = [str(WITHOUT_CUDA), str(SCRIPT), kind, str(limit)]
    done = warm("streaming").run(words, SCRIPT.parent, UNWATCHED, 120)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def finding(answer: dict[str, Any]) -> dict[str, str] | None:
    return next(
        (each for each in answer["profile"]["findings"] if each["code"] == "full-cache"), None
    )


@pytest.mark.parametrize("kind", FIXES)
def test_a_cache_that_evicts_is_found_and_a_larger_one_makes_later_epochs_faster(kind: str) -> None:
    before = trained(kind, SMALL)
    found = finding(before)
    assert found is not None
    assert "has 12.8 MB, its cache may have 4.00 MB" in found["evidence"]
    assert FIXES[kind] in found["fix"]
    assert min(before["downloads"]) > 30, "each epoch downloads all again"

    after = trained(kind, ENOUGH[kind])
    assert finding(after) is None
    assert after["downloads"][0] > 30
    assert after["downloads"][1:] == [0, 0]
    assert min(before["epochs"][1:]) > 1.5 * min(after["epochs"][1:])
