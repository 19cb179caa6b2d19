"""What copies bring, reckoned from trials whose figures are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeprof.analyze.sweep.conversion import evaluate
from pipeprof.model import (
    Conversion,
    ConversionSpec,
    Copy,
    Sample,
    SweepResult,
    Trial,
    Untried,
)
from tests.sweep_samples import sample_sweep, sample_trial

SAMPLE = Sample(
    rows=1000, ram_bytes=200_000, share=0.1, parts=8, parts_in_all=80, storage_bytes=200_000
)


def copy(name: str, size: int = 100_000, storage: str = "local", **more: Any) -> Copy:
    url = f"/{storage}/{name}"
    kind, _, compression = name.partition(":")
    return Copy(url, name, storage, kind, compression, rows=1000, objects=8, bytes=size, **more)


def trial(url: str, speed: float, width: float = 0.01, starved: float = 0.4, **more: Any) -> Trial:
    interval = (speed * (1 - width), speed * (1 + width))
    return sample_trial(
        url.rpartition("/")[2].partition(":")[0],
        starved=starved, samples_per_s=speed, url=url, interval=interval, **more,
    )  # fmt: skip


def swept(copies: list[Copy], *trials: Trial, control: bool = True) -> SweepResult:
    """The first trial is of the data as it is, and so is one behind those of all copies."""
    spec = replace(
        sample_sweep().spec, urls=("/data",), conversion=ConversionSpec((), ("local",), 1)
    )
    planned = 2 + len([one for one in copies if one.skipped is None])
    number = planned - 1 if control and len(trials) == planned else None
    conversion = Conversion(tuple(copies), SAMPLE, control=number)
    return sample_sweep(spec=spec, trials=trials, planned=planned, conversion=conversion)


def weighed(copies: list[Copy], *trials: Trial) -> Conversion:
    _, conversion = evaluate(swept(copies, *trials))
    assert conversion is not None
    return conversion


def as_it_is(speed: float = 10_000, **more: Any) -> Trial:
    return replace(trial("/data", speed, **more), format="csv")


def test_a_gain_is_in_speed_storage_reads_and_cpu() -> None:
    base = as_it_is(bytes_per_sample=200.0, cpu_s_per_sample=8e-6)
    better = trial("/local/parquet:zstd", 20_000, bytes_per_sample=50.0, cpu_s_per_sample=2e-6)
    found = weighed([copy("parquet:zstd", 50_000)], base, better, base)
    [gain] = found.gains
    assert (gain.speed, gain.storage, gain.read, gain.cpu) == pytest.approx((2, 0.25, 0.25, 0.25))
    assert gain.difference == "faster"
    # two intervals of 1 % each way, whose squares add up
    assert gain.speed_interval == pytest.approx((2 * 0.986, 2 * 1.0142), rel=1e-3)
    assert found.advice["local"] == (
        "parquet:zstd gives 2.00× the samples/s of csv as it is (95 %: 1.97× to 2.03×), and takes "
        "0.25× the bytes on storage and 0.25× the CPU a sample."
    )


def test_what_the_same_data_differs_by_is_no_gain() -> None:
    copies = [copy("parquet", 50_000)]
    faster = trial("/local/parquet", 11_000)
    quiet = weighed(copies, as_it_is(), faster, as_it_is(10_050))
    assert quiet.gains[0].difference == "faster"
    restless = weighed(copies, as_it_is(), faster, as_it_is(12_000))
    assert restless.gains[0].difference == "none"
    assert restless.advice["local"] == (
        "no format is faster than csv as it is by any difference that this data can show; "
        "parquet takes 0.25× the bytes on storage."
    )


def test_a_difference_that_is_sure_but_slight_is_none() -> None:
    found = weighed([copy("parquet")], as_it_is(width=1e-4), trial("/local/parquet", 10_200, 1e-4))
    assert found.gains[0].speed_interval[0] > 1
    assert found.gains[0].difference == "none"


def test_data_that_feeds_is_said_to_feed() -> None:
    base = as_it_is(starved=0.01)
    found = weighed([copy("parquet", 20_000)], base, trial("/local/parquet", 10_000, starved=0.01))
    assert found.advice["local"].startswith(
        "csv as it is feeds the accelerator already, and no format is faster than it by any "
    )


def test_slower_formats_are_advised_against() -> None:
    copies = [copy("tfrecord", 600_000), copy("csv:gzip", 50_000)]
    slow = (trial("/local/tfrecord", 2_000), trial("/local/csv:gzip", 5_000))
    assert weighed(copies, as_it_is(), *slow).advice["local"] == (
        "keep csv as it is: the copies are slower; the fastest, csv:gzip, gives 0.50× its "
        "samples/s and takes 0.25× the bytes on storage."
    )


def test_of_equals_the_leanest_is_advised_for_each_storage() -> None:
    copies = [
        copy("parquet", 60_000),
        copy("parquet:zstd", 40_000),
        copy("parquet", 60_000, "s3://b"),
    ]
    trials = (
        trial("/local/parquet", 20_300),
        trial("/local/parquet:zstd", 20_000),
        trial("/s3://b/parquet", 40_000),
    )
    advice = weighed(copies, as_it_is(), *trials).advice
    assert list(advice) == ["local", "s3://b"]
    assert advice["local"].startswith("parquet:zstd gives 2.00×")
    assert advice["s3://b"].startswith("parquet gives 4.00×")


def test_row_groups_are_advised_on_where_several_were_tried() -> None:
    small, large = (
        replace(copy("parquet"), url=f"/local/{size}", row_group_bytes=size << 20,
                name=f"parquet, {size} MiB groups")
        for size in (1, 64)
    )  # fmt: skip
    found = weighed([small, large], as_it_is(), trial("/local/1", 5_000), trial("/local/64", 9_000))
    [advice] = found.layout
    assert advice == (
        "parquet on local: row groups of 64 MiB give 1.80× the samples/s of 1 MiB "
        "(95 %: 1.77× to 1.83×)."
    )
    same = weighed([small, large], as_it_is(), trial("/local/1", 9_050), trial("/local/64", 9_000))
    [advice] = same.layout
    assert advice == (
        "parquet on local: row groups of 1 MiB or 64 MiB make no difference that this data can "
        "show."
    )
    assert weighed([small], as_it_is(), trial("/local/1", 9_000)).layout == ()


def test_unfinished_there_is_no_control_yet() -> None:
    copies = [copy("parquet"), copy("tfrecord"), replace(copy("csv"), skipped="x")]
    found = weighed(copies, as_it_is(), trial("/local/parquet", 20_000))
    assert found.control is None
    assert [gain.url for gain in found.gains] == ["/local/parquet"]
    whole = weighed(
        copies, as_it_is(), trial("/local/parquet", 20_000), trial("/local/tfrecord", 1), as_it_is()
    )
    assert (whole.baseline, whole.control) == (0, 3)


def test_a_trial_that_delivered_nothing() -> None:
    found = weighed([copy("parquet")], as_it_is(), trial("/local/parquet", 0.0))
    assert found.gains[0].difference == "slower"


def test_before_the_first_trial_nothing_is_said() -> None:
    assert weighed([copy("parquet")]).gains == ()


def by(reader: str, plain: Trial) -> Trial:
    """The same data by a reader."""
    return replace(plain, reader=reader, url=f"{reader}::{plain.url}")


def test_each_reader_of_a_copy_has_a_gain_of_its_own() -> None:
    copies = [copy("parquet", 50_000)]
    own, polars = trial("/local/parquet", 20_000), by("polars", trial("/local/parquet", 30_000))
    trials = (as_it_is(), by("polars", as_it_is(15_000)), own, polars)
    _, found = evaluate(swept(copies, *trials, control=False))
    assert found is not None
    assert [(gain.url, round(gain.speed, 6), gain.storage) for gain in found.gains] == [
        ("polars::/data", 1.5, 1.0),
        ("/local/parquet", 2.0, 0.25),
        ("polars::/local/parquet", 3.0, 0.25),
    ]
    assert found.advice["local"].startswith("parquet by polars gives 3.00× the samples/s of csv as")


def test_nobody_converts_what_another_reader_reads_as_fast() -> None:
    copies = [copy("parquet", 50_000)]
    trials = (as_it_is(), by("polars", as_it_is(30_000)), trial("/local/parquet", 30_200))
    _, found = evaluate(swept(copies, *trials, control=False))
    assert found is not None
    assert found.advice["local"] == (
        "csv as it is by polars gives 3.00× the samples/s of csv as it is (95 %: 2.96× to 3.04×), "
        "and no copy is faster by any difference that this data can show."
    )


def cut_short(slow: Trial, at_most: float) -> Untried:
    return Untried(slow.url, 256, 4, 2, at_most / 1.1, at_most, may_be_faster=True)


def test_of_a_copy_that_was_searched_no_further_the_limit_counts() -> None:
    """With more workers the second copy may be as fast as the original, and not as the first."""
    copies, slow = [copy("parquet"), copy("tfrecord", 20_000)], trial("/local/tfrecord", 6_000)
    result = swept(copies, as_it_is(), trial("/local/parquet", 20_000), slow, as_it_is())
    _, found = evaluate(replace(result, untried=(cut_short(slow, 13_000),)))
    assert found is not None
    parquet, tfrecord = found.gains
    assert (parquet.searched, tfrecord.searched) == (True, False)
    assert tfrecord.speed_interval == (pytest.approx(0.6, rel=0.02), pytest.approx(1.3))
    assert tfrecord.difference == "none"
    assert found.advice["local"].startswith("parquet gives 2.00× the samples/s of csv as it is")


def test_where_no_copy_can_reach_the_original_the_advice_gives_the_limit() -> None:
    slow = trial("/local/parquet", 4_000)
    result = swept([copy("parquet")], as_it_is(), slow, as_it_is())
    _, found = evaluate(replace(result, untried=(cut_short(slow, 9_000),)))
    assert found is not None
    assert found.gains[0].difference == "slower"
    assert found.advice["local"] == (
        "keep csv as it is: none of the copies gives more than 0.90× its samples/s (95 %)."
    )
