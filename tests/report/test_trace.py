"""The Chrome trace: its events, and that no spans overlap on a track."""

import gzip
from collections import defaultdict
from dataclasses import replace

import orjson
import pytest
import torch
from click.testing import CliRunner
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.cli.app import app
from pipeprof.errors import UsageError
from pipeprof.model import BatchLog
from pipeprof.report.trace.chrome import (
    LOADER,
    STEP,
    events_of,
    render_trace,
    tensorboard_name,
    trace_of,
)
from tests.samples import sample_profile
from tests.sweep_samples import sample_sweep


@pytest.fixture(scope="module")
def profile():
    """Profile a real loader with two workers; generated times are not irregular enough."""
    own = DataLoader(torch.arange(400).reshape(100, 4), 2, num_workers=2)
    loader = pipeprof.wrap(own, whole=True)
    for _ in loader:
        sum(range(2000))
    return loader.profile()


@pytest.fixture(scope="module")
def events(profile):
    return trace_of(profile)["traceEvents"]


def spans(events, **wanted):
    found = [each for each in events if each["ph"] == "X"]
    return [each for each in found if all(each[key] == value for key, value in wanted.items())]


def test_every_batch_is_a_step_with_its_wait(profile, events):
    steps = [each for each in spans(events) if each["name"].startswith(STEP)]
    assert len(steps) == len(profile.batches.index) == len(spans(events, name=LOADER)) == 50
    assert {each["cat"] for each in steps} == {"user_annotation"}
    assert {each["cat"] for each in spans(events, name=LOADER)} == {"cpu_op"}


def test_the_waits_are_those_of_the_profile(profile, events):
    batches = profile.batches
    waits = sum(d - a for a, d in zip(batches.asked_s, batches.delivered_s, strict=True))
    traced = sum(each["dur"] for each in spans(events, name=LOADER))
    assert traced * 1e-6 == pytest.approx(waits, abs=1e-6 * len(batches.index))


def test_nothing_on_a_track_overlaps_but_what_lies_within(events):
    by_track = defaultdict(list)
    for each in spans(events):
        by_track[each["pid"], each["tid"]].append((each["ts"], -each["dur"]))
    assert len(by_track) >= 1 + 2 * 2
    for track in by_track.values():
        ends = []
        for begin, minus in sorted(track):
            end = begin - minus
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or end <= ends[-1]
            ends.append(end)


def test_tracks_have_names_and_numbers_of_their_own(events):
    named = [each for each in events if each["name"] == "thread_name"]
    assert len({each["tid"] for each in named}) == len(named)
    assert {each["args"]["name"] for each in named} >= {"training loop", "fetch", "serialise"}
    processes = [each["args"]["name"] for each in events if each["name"] == "process_name"]
    assert processes == ["main", "worker 0", "worker 1"]


def test_an_arrow_leads_from_the_fetch_to_the_delivery(profile, events):
    begun = {each["id"]: each for each in events if each["ph"] == "s"}
    ended = {each["id"]: each for each in events if each["ph"] == "f"}
    assert set(begun) == set(ended) == set(profile.batches.index)
    for index, arrow in begun.items():
        assert arrow["ts"] <= ended[index]["ts"]
        [fetch] = [each for each in spans(events, name="fetch") if each["args"]["batch"] == index]
        assert arrow["pid"] == fetch["pid"]
        assert fetch["ts"] <= arrow["ts"] <= fetch["ts"] + fetch["dur"]


def test_without_workers_main_makes_the_batches():
    loader = pipeprof.wrap(DataLoader(torch.arange(20), 2))
    list(loader)
    events = trace_of(loader.profile())["traceEvents"]
    assert {each["pid"] for each in spans(events, name="fetch")} == {1}
    assert not [each for each in events if each["ph"] in "sf"]


def test_a_profile_of_which_little_is_known_is_traced_all_the_same():
    columns = {"index": (0,), "asked_s": (1.0,), "delivered_s": (2.0,), "done_s": (3.0,)}
    little = replace(sample_profile(), batches=BatchLog(**columns))
    assert [each["name"] for each in spans(trace_of(little)["traceEvents"])] == [
        f"{STEP}0", LOADER, "step",
    ]  # fmt: skip


def test_a_pause_is_no_part_of_its_step():
    columns = {"index": (0,), "asked_s": (1.0,), "delivered_s": (2.0,), "done_s": (9.0,)}
    log = BatchLog(**columns, pause_s=(6.0,), pause_kind=(0,))
    events = spans(trace_of(replace(sample_profile(), batches=log))["traceEvents"])
    assert [(each["name"], each["ts"], each["dur"]) for each in events[-2:]] == [
        ("step", 1e6, 1e6), ("pause", 2e6, 6e6),
    ]  # fmt: skip


def test_the_command_writes_it_compressed_or_not(tmp_path, profile):
    profile.save(tmp_path / "run.json")
    run = str(tmp_path / "run.json")
    for name, opened in (("a.json", open), ("a.json.gz", gzip.open)):
        done = CliRunner().invoke(app, ["report", run, "--trace", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        with opened(tmp_path / name, "rb") as file:
            assert orjson.loads(file.read()) == trace_of(profile)
    (tmp_path / "logs").mkdir()
    CliRunner().invoke(app, ["report", run, "--trace", str(tmp_path / "logs")])
    assert [each.name for each in (tmp_path / "logs").iterdir()] == [tensorboard_name(profile)]


@pytest.mark.parametrize("installed", [True, False])
def test_a_plugin_that_is_not_installed_is_told_with_what_brings_it(
    installed, tmp_path, monkeypatch
):
    if not installed:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    sample_profile().save(tmp_path / "run.json")
    done = CliRunner().invoke(
        app, ["report", str(tmp_path / "run.json"), "--trace", str(tmp_path / "a.json")]
    )
    assert done.exit_code == 0
    assert ("pip install 'pipeprof[tensorboard]'" in done.stderr) == (not installed)


def test_what_cannot_be_traced_is_refused(tmp_path):
    with pytest.raises(UsageError, match="has no recorded batches"):
        render_trace(replace(sample_profile(), batches=BatchLog()), compressed=False)
    sample_sweep().save(tmp_path / "sweep.json")
    done = CliRunner().invoke(
        app, ["report", str(tmp_path / "sweep.json"), "--trace", str(tmp_path / "out.json")]
    )
    assert "is a sweep; name the profile of one of its trials" in str(done.exception)
    assert not (tmp_path / "out.json").exists()


def test_device_steps_are_kernels_that_the_steps_launched():
    """A trace of its own shows device steps as kernels; torch's traces have the real kernels."""
    columns = {
        "index": (0, 1, 2), "asked_s": (0.0, 1.0, 2.0), "delivered_s": (0.5, 1.1, 2.1),
        "done_s": (1.0, 2.0, 3.0), "device_busy_s": (0.7, None, 0.8), "worker": (0, 0, 0),
    }  # fmt: skip
    profile = replace(sample_profile(), batches=BatchLog(**columns))
    events = trace_of(profile)["traceEvents"]
    first, last = spans(events, cat="kernel")
    assert [first["ts"], first["dur"], last["ts"], last["dur"]] == [500_000, 700_000, 2_100_000,
                                                                     800_000]  # fmt: skip
    launched = [each["args"].get("correlation") for each in spans(events, name="step")]
    assert launched == [first["args"]["correlation"], None, last["args"]["correlation"]]
    assert launched[0] != launched[2]
    assert first["args"]["stream"] > 0
    beside = events_of(profile, 0.0, own_loop=False)
    assert {each["cat"] for each in spans(beside)} == {"cpu_op"}
    assert [each["dur"] for each in spans(beside, name="device step")] == [700_000, 800_000]


def test_a_step_that_the_accelerator_begins_late_takes_as_long_as_it_does():
    columns = {"index": (0, 1), "asked_s": (0.0, 0.2), "delivered_s": (0.1, 0.3),
               "done_s": (0.2, 0.4), "device_busy_s": (0.5, 0.5)}  # fmt: skip
    late = replace(sample_profile(), batches=BatchLog(**columns))
    found = spans(trace_of(late)["traceEvents"], cat="kernel")
    assert [(each["ts"], each["dur"]) for each in found] == [(100_000, 500_000), (600_000, 500_000)]
