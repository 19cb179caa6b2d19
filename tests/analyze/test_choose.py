"""Which trial a sweep recommends."""

from dataclasses import replace

import pipeprof
from pipeprof.analyze.sweep.recommend import choose
from pipeprof.analyze.wording.loader_code import loader_code
from pipeprof.model import LoaderConfig, ReadOptions, SweepSpec, Trial

SPEC = SweepSpec(urls=("data/csv",), workers=(0, 4), prefetch=(2,), batch_sizes=(256,), step_s=0.01)


def trial(workers, rate, starved, verdict, prefetch=2, url="data/csv"):
    return Trial(
        url=url, format="csv", profile="trial-000.json", samples_per_s=rate,
        config=LoaderConfig(workers, prefetch if workers else None, batch_size=256),
        interval=(rate * 0.99, rate * 1.01), spread=0.02, starved_fraction=starved,
        starved_interval=(starved - 0.01, starved + 0.01), verdict=verdict, bottleneck="decode",
        bytes_per_sample=100.0, demand_samples_per_s=25_600.0,
    )  # fmt: skip


def test_the_cheapest_setting_that_feeds_is_taken():
    trials = [
        trial(0, 10_000, 0.6, "starved"),
        trial(2, 25_000, 0.02, "fed", prefetch=4),
        trial(2, 25_000, 0.02, "fed", prefetch=2),
        trial(4, 25_100, 0.01, "fed"),
    ]
    (advice,) = choose(trials, SPEC)
    assert advice.best_trial == 2
    assert advice.headline == (
        "Fed with 2 workers, prefetch 2, batch 256: the accelerator waits "
        "2.0 % (95 %: 1.0–3.0 %) of the time. With 0 workers, batch 256 it waited 60.0 %; "
        "decode was to blame."
    )
    assert advice.recommendation.current == "0 workers, batch 256"
    assert advice.recommendation.proposed == "2 workers, prefetch 2, batch 256"
    assert advice.recommendation.verified_samples_per_s == 25_000
    assert "10,000 samples/s and starved 60.0 % before" in advice.recommendation.why


def test_when_nothing_feeds_the_fastest_is_taken_unless_a_cheaper_one_is_as_fast():
    trials = [
        trial(0, 5_000, 0.8, "starved"),
        trial(1, 9_900, 0.6, "starved"),
        trial(4, 10_000, 0.59, "starved"),
    ]
    (advice,) = choose(trials, SPEC)
    assert advice.best_trial == 1
    assert "Starved at every setting tried" in advice.headline
    assert "gets 9,900 of the 25,600 samples/s it could take" in advice.headline
    # 0.95 × 25,600 samples/s of 100 bytes
    assert advice.headline.endswith("decode is to blame. Feeding it takes 2.43 MB/s read.")


def test_what_it_takes_to_feed_is_told_in_cores_and_bytes():
    best = replace(trial(4, 10_000, 0.59, "starved"), cpu_s_per_sample=0.2e-3)
    (advice,) = choose([best], SPEC)
    # 24,320 samples/s × 0.2 ms
    assert "takes 4.9 cores that build batches and 2.43 MB/s read." in advice.headline
    received = replace(best, cpu_s_per_sample=0.02e-3, bytes_per_sample=0, bottleneck="transfer")
    assert (
        "takes 0.5 cores that build batches and fewer, larger batches for the training process to "
        "receive." in choose([received], SPEC)[0].headline
    )
    bare = replace(best, demand_samples_per_s=2e6)
    assert "To feed it" not in choose([bare], SPEC)[0].headline, "no accelerator takes that"


def test_each_data_set_has_its_own_advice():
    trials = [
        trial(0, 5_000, 0.8, "starved"),
        trial(0, 24_000, 0.01, "fed", url="data/parquet"),
        trial(1, 9_000, 0.6, "inconclusive"),
    ]
    csv, parquet = choose(trials, SPEC)
    assert (csv.url, csv.best_trial) == ("data/csv", 2)
    assert (parquet.url, parquet.best_trial) == ("data/parquet", 1)
    assert parquet.recommendation.why.startswith("no other setting")
    assert csv.headline.startswith("Inconclusive")


def test_the_code_runs_as_pasted():
    code = loader_code(
        "data/csv",
        LoaderConfig(4, 2, batch_size=64),
        replace(SPEC, transform="lib/decode.py:images"),
    )
    compile(code, "pasted", "exec")
    assert "from decode import images" in code
    assert "batch_size=64, transform=images)" in code, "and nothing that is so by default"
    assert "num_workers=4, prefetch_factor=2, persistent_workers=True" in code
    assert "num_workers=0" in loader_code("data/csv", LoaderConfig(0, batch_size=1), SPEC)


def test_the_code_reads_as_the_trials_did(monkeypatch):
    """It is run, with what it calls replaced by what keeps the arguments."""
    spec = replace(
        SPEC,
        columns=("id", "a column's name"),
        read=ReadOptions(split_bytes=0, queue_depth=8, read_ahead=False),
        on_error="skip",
        s3_client="pyarrow",
        with_options=True,
    )
    given = {}
    monkeypatch.setattr(pipeprof, "open_dataset", lambda url, **all_of_it: given.update(all_of_it))
    for url in ("s3://bucket/data", "data/csv"):
        code = loader_code(url, LoaderConfig(2, 4, batch_size=64), spec)
        exec(code.replace("loader = ", "loader = lambda: "))
        assert given.pop("storage_options", None) == (
            {"s3_client": "pyarrow"} if url.startswith("s3") else None
        )
        assert given == {
            "batch_size": 64, "columns": ["id", "a column's name"], "on_error": "skip",
            "read": spec.read,
        }  # fmt: skip
        assert "not saved: add storage_options" in code
        assert "\n    on_error='skip',\n" in code, "each argument has its line, when they are long"
