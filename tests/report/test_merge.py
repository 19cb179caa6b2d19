"""Merging a profile into a trace of torch.profiler, on a real run that both recorded."""

import gzip
import time
from dataclasses import replace
from statistics import median

import orjson
import pytest
import torch
from click.testing import CliRunner
from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.cli.app import app
from pipeprof.errors import UsageError
from pipeprof.report.trace.merge import merge, repaired
from tests.samples import sample_profile

# torch 2.11 says so of a profiler's first and only cycle, too
pytestmark = pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return (trace, profile); torch records batches 10 to 30."""
    path = tmp_path_factory.mktemp("torch") / "host.123.pt.trace.json"
    own = DataLoader(torch.arange(800).reshape(200, 4), 4, num_workers=2)
    loader = pipeprof.wrap(own, whole=True)
    watching = torch_profile(activities=[ProfilerActivity.CPU])
    for number, _ in enumerate(loader):
        if number == 10:
            watching.start()
        if number == 30:
            watching.stop()
        time.sleep(0.002)
    watching.export_chrome_trace(str(path))
    return path, loader.profile()


@pytest.fixture(scope="module")
def trace(run):
    return orjson.loads(run[0].read_bytes())


@pytest.mark.slow
@pytest.mark.timed
def test_both_clocks_agree(run, trace):
    """A wait that torch saw is where the profile has it, within a millisecond, but for those in
    which another process got the core."""
    profile = run[1]
    base_s = trace["baseTimeNanoseconds"] / 1e9
    theirs = [each for each in trace["traceEvents"] if each["name"] == LOADER]
    assert len(theirs) >= 18
    asked = [at + profile.unix_offset_s for at in profile.batches.asked_s]
    apart_s = [min(abs(base_s + each["ts"] * 1e-6 - at) for at in asked) for each in theirs]
    assert median(apart_s) < 1e-3


@pytest.mark.slow
def test_waits_get_the_category_that_the_plugin_counts(run, trace):
    merged = merge(trace, run[1])
    waits = [each for each in merged["traceEvents"] if each["name"] == LOADER]
    assert {each["cat"] for each in waits} == {"cpu_op"}
    assert repaired(trace) == len(waits)
    assert repaired(merged) == 0


def test_the_workers_events_in_the_period_are_added(run, trace):
    merged = merge(trace, run[1])
    theirs = len(trace["traceEvents"])
    assert [each["name"] for each in merged["traceEvents"][:theirs]] == [
        each["name"] for each in trace["traceEvents"]
    ]
    ours = merged["traceEvents"][theirs:]
    fetched = [each["args"]["batch"] for each in ours if each["name"] == "fetch"]
    assert len(fetched) >= 15
    assert set(fetched) <= set(range(8, 40))
    taken = {each["pid"] for each in trace["traceEvents"]}
    assert not taken & {each["pid"] for each in ours}
    named = {each["args"]["name"] for each in ours if each["name"] == "process_name"}
    assert named == {"pipeprof: main", "pipeprof: worker 0", "pipeprof: worker 1"}


def test_other_events_of_the_trace_are_unchanged(run, trace):
    merged = merge(trace, run[1])
    assert {key: merged[key] for key in trace if key != "traceEvents"} == {
        key: trace[key] for key in trace if key != "traceEvents"
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unix_offset_s": None}, "does not record its start time"),
        ({"unix_offset_s": 0.0}, "do not overlap in time"),
    ],
)
def test_a_profile_of_another_time_is_refused(run, trace, change, message):
    with pytest.raises(UsageError, match=message):
        merge(trace, replace(run[1], **change))


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ({}, "has no traceEvents"),
        ({"traceEvents": [1]}, "has no traceEvents"),
        ({"traceEvents": [{"ph": "M", "name": "x"}]}, "has no spans"),
    ],
)
def test_other_json_than_a_trace_is_refused(trace, message):
    with pytest.raises(UsageError, match=message):
        merge(trace, replace(sample_profile(), unix_offset_s=0.0))


def test_the_command_writes_it_under_the_traces_name(run, tmp_path):
    path, profile = run
    profile.save(tmp_path / "run.json")
    done = CliRunner().invoke(
        app, ["trace", "merge", str(path), str(tmp_path / "run.json"), "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert "events added" in done.output
    written = orjson.loads((tmp_path / path.name).read_bytes())
    assert written == merge(orjson.loads(path.read_bytes()), profile)


def test_a_compressed_trace_is_read_and_written(run, tmp_path):
    path, profile = run
    profile.save(tmp_path / "run.json")
    (tmp_path / "in.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    arguments = [str(tmp_path / "in.json.gz"), str(tmp_path / "run.json")]
    out = tmp_path / "out.json.gz"
    done = CliRunner().invoke(app, ["trace", "merge", *arguments, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    summary = orjson.loads(done.output)
    assert summary["out"] == str(out)
    assert min(summary["events_added"], summary["waits_repaired"]) > 0
    assert orjson.loads(gzip.decompress(out.read_bytes()))["traceEvents"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "is not JSON"),
        (b"\x1f\x8bxx", "is cut short"),
        (b"[]", "not a trace"),
        (None, "No"),
    ],
)
def test_a_trace_that_cannot_be_read_is_a_clear_error(tmp_path, data, message):
    sample_profile().save(tmp_path / "run.json")
    if data is not None:
        (tmp_path / "in.json").write_bytes(data)
    arguments = [
        str(tmp_path / "in.json"),
        str(tmp_path / "run.json"),
        "--out",
        str(tmp_path / "o"),
    ]
    done = CliRunner().invoke(app, ["trace", "merge", *arguments, "--out", str(tmp_path / "o")])
    assert message in str(done.exception)
    assert not (tmp_path / "o").exists()


def test_the_trace_itself_is_never_overwritten(run, tmp_path):
    path, profile = run
    profile.save(tmp_path / "run.json")
    before = path.read_bytes()
    arguments = [str(path), str(tmp_path / "run.json"), "--out", str(path.parent)]
    done = CliRunner().invoke(app, ["trace", "merge", *arguments])
    assert "is the input trace" in str(done.exception)
    assert path.read_bytes() == before
