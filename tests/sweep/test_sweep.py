"""Sweeps over real files are planned, run, saved, resumed and reported."""

import dataclasses
import os

import pyarrow as pa
import pytest

import pipeprof
from pipeprof import formats
from pipeprof.errors import FormatError, OutputError, PipeprofError, ProfileError, UsageError
from pipeprof.model import LoaderConfig, SweepSpec
from pipeprof.sweep.consumer import make_consumer
from pipeprof.sweep.plan import TrialSetting, check, grid, plan_remaining, plan_sweep
from pipeprof.sweep.progress import SweepListener
from pipeprof.sweep.references import Reference
from pipeprof.sweep.runner import run_sweep


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    table = pa.record_batch({"id": pa.array(range(4000), pa.int64())})
    for number in range(4):
        encoder = formats.get("parquet").encoder(table.schema)
        (folder / f"{number}.parquet").write_bytes(encoder.write(table) + encoder.finish())
    return str(folder)


def spec_for(data, **changes):
    spec = SweepSpec(
        urls=(data,), workers=(0, 1), prefetch=(2,), batch_sizes=(64,), step_s=0.004,
        trial_s=0.2, warmup_s=0.05,
    )  # fmt: skip
    return dataclasses.replace(spec, **changes)


class Listener(SweepListener):
    def __init__(self, stop_after=None):
        self.trials, self.stop_after = [], stop_after

    def begin(self, done, planned):
        self.began = (done, planned)

    def started(self, setting):
        if len(self.trials) == self.stop_after:
            raise KeyboardInterrupt

    def ticked(self, share):
        assert 0 <= share <= 1

    def finished(self, trial):
        self.trials.append(trial)

    def repeating(self, setting):
        self.repeated = setting

    def pairing(self, setting, number, planned):
        self.paired = (number, planned)


def sweep(folder, spec, **options):
    listener = Listener(options.pop("stop_after", None))
    max_s = options.pop("max_s", None)
    return run_sweep(plan_sweep(spec, folder, **options), listener, max_s), listener


def saved_in(folder):
    return pipeprof.load(folder / "sweep.json")


def test_the_grid_is_every_combination_once():
    spec = spec_for("a", urls=("a", "b"), workers=(0, 2), prefetch=(1, 4), batch_sizes=(8, 16))
    settings = grid(spec, spec.urls)
    assert len(settings) == 2 * 2 * (1 + 2)
    assert settings[0] == TrialSetting("a", 8, 0, None)
    assert settings[1:3] == (TrialSetting("a", 8, 2, 1), TrialSetting("a", 8, 2, 4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"workers": (-1,)}, "--workers -1 is impossible; it must be at least 0"),
        ({"prefetch": (0,)}, "--prefetch 0"),
        ({"batch_sizes": (0,)}, "--batch-size 0"),
        ({"urls": ()}, "at least one URL"),
        ({"trial_s": 0.0}, "more than 0 s"),
        ({"threshold": 5.0}, "threshold of 5.0"),
        ({"step_s": -0.1}, "step of -0.1 s"),
        ({"step": "m:f"}, "either an emulated step time or"),
    ],
)
def test_an_impossible_grid_is_refused(change, words):
    with pytest.raises(UsageError, match=words):
        check(spec_for("a", **change))


@pytest.mark.timed
def test_trials_are_run_saved_and_advised_on(data, tmp_path):
    outcome, listener = sweep(tmp_path / "out", spec_for(data))
    result = outcome.result
    assert outcome.stopped is None
    assert listener.began == (0, 2)
    assert [trial.config.num_workers for trial in result.trials] == [0, 1]
    assert saved_in(tmp_path / "out") == result
    for trial in result.trials:
        profile = pipeprof.load(tmp_path / "out" / trial.profile)
        assert profile.throughput.samples_per_s == trial.samples_per_s
        assert profile.environment.accelerator == "emulated: a sleep of 4.00 ms a step"
        assert profile.stages["step"].p50_s == pytest.approx(0.004, rel=0.3)
        # 64 rows a batch, 4 ms a step: no more than 16,000 samples/s can be taken
        assert 1000 < trial.samples_per_s < 18_000
        assert trial.demand_samples_per_s == pytest.approx(16_000, rel=0.3)
    (advice,) = result.advice
    assert "open_dataset" in advice.recommendation.code


def test_the_step_grows_with_the_batch():
    spec = spec_for("a", batch_sizes=(64, 256))
    assert make_consumer(spec, 64).label == "emulated: a sleep of 4.00 ms a step"
    assert make_consumer(spec, 256).label == "emulated: a sleep of 16.0 ms a step"


def test_an_interrupted_sweep_keeps_its_trials_and_can_be_resumed(data, tmp_path):
    spec = spec_for(data, workers=(0, 1, 2))
    outcome, _ = sweep(tmp_path / "out", spec, stop_after=1)
    assert outcome.stopped == "interrupted"
    saved = saved_in(tmp_path / "out")
    assert len(saved.trials) == 1
    assert saved.planned == 3

    listener = Listener()
    finished = run_sweep(plan_remaining(tmp_path / "out"), listener)
    assert finished.stopped is None
    assert listener.began == (1, 3)
    (first, *_), (kept,) = finished.result.trials, saved.trials
    assert dataclasses.replace(first, interval=kept.interval) == kept, "known to differ by more"
    (noise,) = finished.result.noise.values()
    repeated = finished.result.trials[noise.trial].config
    assert listener.repeated.num_workers == repeated.num_workers
    assert [trial.config.num_workers for trial in finished.result.trials] == [0, 1, 2]


def test_a_sweep_out_of_time_keeps_its_trials(data, tmp_path):
    outcome, _ = sweep(tmp_path / "out", spec_for(data), max_s=0.01)
    assert outcome.stopped == "out of time"
    assert len(outcome.result.trials) == 1, "a trial that has begun is finished"


@pytest.mark.timed
def test_the_users_transform_runs_and_is_found_to_be_the_bottleneck(data, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import time\ndef slow(batch):\n    time.sleep(0.01)\n    return batch\n"
    )
    outcome, _ = sweep(tmp_path / "out", spec_for(data, transform=f"{tmp_path}/mine.py:slow"))
    for trial in outcome.result.trials:
        profile = pipeprof.load(tmp_path / "out" / trial.profile)
        assert profile.stages["transform"].p50_s == pytest.approx(0.01, rel=0.3)
        assert trial.bottleneck == "transform"
        assert trial.verdict == "starved"
    assert "from mine import slow" in outcome.result.advice[0].recommendation.code


@pytest.mark.timed
def test_the_users_own_step_takes_the_place_of_the_sleep(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.py").write_text(
        "import time\ndef step(batch):\n    assert len(batch['id'])\n    time.sleep(0.006)\n"
    )
    outcome, _ = sweep(
        tmp_path / "out", spec_for(data, step_s=None, step="steps:step", workers=(0,))
    )
    profile = pipeprof.load(tmp_path / "out" / outcome.result.trials[0].profile)
    assert profile.stages["step"].p50_s == pytest.approx(0.006, rel=0.3)
    assert profile.environment.accelerator == "your own step, steps:step"


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_the_transform_is_one_sentence(data, tmp_path, workers):
    (tmp_path / "bad.py").write_text("def crash(batch):\n    return batch['prize']\n")
    spec = spec_for(data, transform=f"{tmp_path}/bad.py:crash", workers=(workers,))
    with pytest.raises(PipeprofError) as caught:
        sweep(tmp_path / "out", spec)
    assert str(caught.value) == (
        f"your function {tmp_path}/bad.py:crash failed at {tmp_path}/bad.py:2: KeyError: 'prize'"
    )


def test_damage_found_by_a_worker_is_one_sentence(tmp_path):
    table = pa.record_batch({"id": pa.array(range(200_000), pa.int64())})
    encoder = formats.get("tfrecord").encoder(table.schema)
    data = bytearray(encoder.write(table) + encoder.finish())
    data[-20] ^= 1
    (tmp_path / "x.tfrecord").write_bytes(data)
    spec = spec_for(str(tmp_path), workers=(1,), batch_sizes=(50_000,), step_s=0.0)
    with pytest.raises(FormatError) as caught:
        sweep(tmp_path / "_out", spec)
    assert "x.tfrecord: record 199999" in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no-colon", "form module:function"),
        ("nowhere.py:f", "nowhere.py does not exist"),
        ("no.such.module:f", "no module 'no.such.module'"),
        ("os:no_such_function", "os has no function 'no_such_function'"),
    ],
)
def test_a_missing_function(text, words):
    with pytest.raises(UsageError, match=words):
        Reference(text).load()


def test_a_module_that_fails_to_import(tmp_path):
    (tmp_path / "broken.py").write_text("import no_such_thing\n")
    with pytest.raises(PipeprofError, match=r"broken\.py failed to import: ModuleNotFoundError"):
        Reference(f"{tmp_path}/broken.py:f").load()


def test_a_folder_that_holds_a_sweep_is_not_overwritten(data, tmp_path):
    plan_sweep(spec_for(data), tmp_path)
    with pytest.raises(UsageError, match="--resume"):
        plan_sweep(spec_for(data), tmp_path)


def test_results_that_cannot_be_written(data, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        plan_sweep(spec_for(data), tmp_path / "file" / "out")


def test_resuming_a_folder_without_a_sweep(tmp_path):
    with pytest.raises(ProfileError, match="does not exist"):
        plan_remaining(tmp_path)
    (tmp_path / "sweep.json").write_text('{"schema": "something else"}')
    with pytest.raises(ProfileError, match="not a profile or sweep"):
        plan_remaining(tmp_path)


def test_more_workers_than_splits_is_noted(data, tmp_path):
    outcome, _ = sweep(tmp_path / "out", spec_for(data, workers=(6,)))
    assert outcome.result.notes == (
        "6 workers share 4 splits: 2 have nothing to read. Write more, smaller files.",
    )


def test_secrets_in_a_url_are_neither_saved_nor_needed_to_resume(tmp_path):
    import fsspec

    table = pa.record_batch({"id": pa.array(range(100), pa.int64())})
    encoder = formats.get("csv").encoder(table.schema)
    data = encoder.write(table) + encoder.finish()
    fsspec.filesystem("memory").pipe_file("/secret-sweep/x.csv", data)
    url = "memory://secret-sweep"
    spec = spec_for(url, workers=(0,))
    outcome, _ = sweep(tmp_path / "out", spec, urls=(url,), storage_options={"hunter": 2})
    for name in os.listdir(tmp_path / "out"):
        assert "hunter" not in (tmp_path / "out" / name).read_text()
    assert outcome.result.trials[0].config == LoaderConfig(0, None, batch_size=64, kind="iterable")
    assert plan_remaining(tmp_path / "out", (url,)).settings() == grid(spec, (url,))
    with pytest.raises(UsageError, match="this sweep is over memory://secret-sweep; give those"):
        plan_remaining(tmp_path / "out", ("memory://other",))
