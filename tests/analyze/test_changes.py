"""What is told to have been changed, and what is no comparison of like with like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeprof.analyze.compare.differences import changes, contention_change, unlike
from pipeprof.model import CacheState, Change, Difference, LoaderConfig, Profile
from tests.samples import ENVIRONMENT, sample_profile
from tests.stage_samples import stage_stats

PLAIN = sample_profile()


def of(field: str, **changed: Any) -> Profile:
    """The sample with something else in one of its parts."""
    return replace(PLAIN, **{field: replace(getattr(PLAIN, field), **changed)})


def test_only_what_differs_is_told() -> None:
    assert changes(PLAIN, PLAIN) == ()
    config = LoaderConfig(4, 2, 1024, pin_memory=True, start_method="fork", kind="iterable")
    after = replace(PLAIN, config=config, environment=replace(ENVIRONMENT, torch="2.14.0"))
    assert changes(PLAIN, after) == (
        Change("loader", "num_workers", 2, 4),
        Change("loader", "pin_memory", False, True),
        Change("machine", "torch", "2.13.0", "2.14.0"),
    )


def test_data_cache_and_rule_are_told_too() -> None:
    after = of("source", url="/data/clicks-parquet", format="parquet")
    after = replace(after, cache=CacheState("cold", "evicted"),
                    diagnosis=replace(PLAIN.diagnosis, threshold=0.1))  # fmt: skip
    assert [(change.of, change.name) for change in changes(PLAIN, after)] == [
        ("data", "url"), ("data", "format"), ("data", "cache"), ("verdict", "threshold"),
    ]  # fmt: skip


def test_other_readers_are_reported_but_not_unknown_ones() -> None:
    before = of("environment", readers={"pyarrow": "25.0", "PIL": "11.0"})
    unknown = of("environment", readers=None)
    after = of("environment", readers={"pyarrow": "26.0", "PIL": "11.0", "polars": "2.1"})
    assert changes(before, after) == (
        Change("machine", "polars", None, "2.1"),
        Change("machine", "pyarrow", "25.0", "26.0"),
    )
    assert changes(unknown, after) == ()


def test_a_sampler_is_not_named_by_profiles_of_earlier_versions() -> None:
    sequential, shuffled = of("config", sampler="Sequential"), of("config", sampler="Random")
    assert changes(sequential, shuffled) == (Change("loader", "sampler", "Sequential", "Random"),)
    assert changes(of("config", sampler=None), shuffled) == ()


def test_what_one_of_them_does_not_know_is_none() -> None:
    names = {each.name: each.after for each in changes(PLAIN, replace(PLAIN, source=None))}
    assert names == {"url": None, "format": None, "objects": None, "bytes": None}
    assert changes(replace(PLAIN, source=None), replace(PLAIN, source=None)) == ()


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (of("environment", accelerator="NVIDIA H100"), "another accelerator"),
        (of("environment", platform="Linux 6.19 x86_64"), "another machine or kernel"),
        (of("environment", cores=4), "another share of the machine's cores"),
        (of("source", bytes=5), "other data"),
        (of("cache", state="cold"), "the cache was warm in one, cold in the other"),
        (of("throughput", batches_per_s=29.4), "batches of other sizes"),
        (of("diagnosis", threshold=0.1), "verdicts by thresholds of 5.0 % and 10.0 %"),
    ],
)
def test_what_is_unlike_is_said(after: Profile, says: str) -> None:
    (said,) = unlike(PLAIN, after, changes(PLAIN, after), None)
    assert said.startswith(says)


def test_settings_and_versions_are_what_one_compares() -> None:
    after = replace(of("environment", torch="2.14.0", pipeprof="0.2.0"),
                    config=LoaderConfig(8, 4, 1024))  # fmt: skip
    assert unlike(PLAIN, after, changes(PLAIN, after), None) == ()


def test_a_machine_that_is_busier_is_told_unless_the_workers_are_more() -> None:
    busy = {**PLAIN.resources, "run-queue": stage_stats(60.0, 600)}
    after = replace(PLAIN, resources=busy)
    (said,) = unlike(PLAIN, after, (), None)
    assert said.startswith("other processes took another share of the cores")
    assert said.endswith("18 % and 69 % of the time to build a batch was waiting for a core")
    assert contention_change(PLAIN, after) == pytest.approx(0.51, abs=0.01)
    hungry = replace(after, resources={**busy, "native-threads": stage_stats(40.0, 600)})
    assert contention_change(PLAIN, hungry) == 0, "its own threads want the cores"
    more = replace(after, config=replace(PLAIN.config, num_workers=8))
    assert unlike(PLAIN, more, changes(PLAIN, more), None) == ()


def test_another_step_is_no_loader_s_doing() -> None:
    step = Difference(0.010, 0.015, 0.005, (0.004, 0.006), "more")
    assert unlike(PLAIN, PLAIN, (), step) == ("the training step itself takes 10.0 ms → 15.0 ms",)
    assert unlike(PLAIN, PLAIN, (), replace(step, shown="none")) == ()
