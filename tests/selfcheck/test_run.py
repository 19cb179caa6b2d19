"""Pipelines that really run, with the correct and with a false truth."""

import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from pipeprof.errors import UsageError
from pipeprof.model import Stage
from pipeprof.selfcheck import run as module
from pipeprof.selfcheck.acts import Act, sleeps
from pipeprof.selfcheck.pipelines import Pipeline, Truth, pipelines
from pipeprof.selfcheck.results import PipelineResult
from pipeprof.selfcheck.run import check, check_pipelines, run

READ_AND_DECODE = Pipeline(
    "short", "sleeps in named stages",
    (sleeps(0.001, Stage.READ), sleeps(0.008, Stage.DECODE)),
    Truth("starved", ("decode",), ("read", "decode", "fetch", "wait", "step")),
    batches=40,
)  # fmt: skip


class Heard:
    def __init__(self):
        self.names = []

    def __call__(self, result):
        self.names.append(getattr(result, "name", "overhead"))


@pytest.mark.timed
@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_true_is_found_right(workers):
    result = run(replace(READ_AND_DECODE, workers=workers))
    if result.outcome == "unsettled":
        pytest.skip(f"NOT TESTED: {result.why}")
    assert result.outcome == "right", result
    assert {figure.status for figure in result.figures} == {"right"}
    assert result.config.num_workers == workers
    assert next(one.truth_s for one in result.figures if one.name == "decode") >= 0.007


@pytest.mark.timed
@pytest.mark.parametrize("name", [one.name for one in pipelines(Path("nowhere"))])
def test_pipeprof_is_right_on_this_machine(name):
    """What `pipeprof selfcheck --quick` runs: all that pipeprof says of each pipeline."""
    heard = Heard()
    (result,) = check(heard, quick=True, only=[name]).pipelines
    assert heard.names == [name]
    if result.outcome in ("skipped", "unsettled"):
        pytest.skip(f"NOT TESTED: {result.why}")
    assert result.outcome == "right", result
    unknown = [figure.name for figure in result.figures if figure.status == "unknown"]
    assert not unknown, "all of them are to be had on Linux"


def lying(**changes):
    return replace(READ_AND_DECODE, workers=0, truth=replace(READ_AND_DECODE.truth, **changes))


@pytest.mark.timed
def test_a_truth_that_is_false_is_found_off_and_tried_twice():
    heard = Heard()
    found = check_pipelines(heard, [lying(finding="no-such-thing")], quick=True, with_cost=False)
    (result,) = found.pipelines
    assert not found.passed
    assert (result.outcome, result.runs) == ("off", 2)
    assert result.why.startswith("finding")
    assert "in run 1: " in result.why
    assert heard.names == ["short"]
    assert found.cost is None


@pytest.mark.timed
def test_what_is_off_once_and_right_the_next_time_is_right_and_said():
    answers = [lying(finding="no-such-thing"), lying()]
    once = module._run_once
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_run_once", lambda *_: once(answers.pop(0), quick=True))
        result = run(READ_AND_DECODE)
    assert (result.outcome, result.runs) == ("right", 2)
    assert result.why == "in run 1: finding"


@pytest.mark.timed
def test_a_loader_that_is_not_as_slow_as_planned_leaves_it_open():
    quick = replace(lying(), acts=(sleeps(0.0001, Stage.DECODE),), step_s=0.02)
    found = check_pipelines(Heard(), [quick], quick=True, with_cost=False)
    (result,) = found.pipelines
    assert (result.outcome, result.runs) == ("unsettled", 3)
    assert result.why.startswith("the run was not starved by decode as planned")
    assert found.passed, "it is no error of pipeprof"


def broken(stretch):
    raise RuntimeError("no such codec\nhere")


@pytest.mark.timed
def test_a_pipeline_that_raises_is_told_of_and_the_others_run():
    raising = replace(READ_AND_DECODE, name="broken", acts=(Act(broken, Stage.DECODE),))
    heard = Heard()
    found = check_pipelines(heard, [raising, lying()], quick=True, with_cost=False)
    assert [one.outcome for one in found.pipelines] == ["failed", "right"]
    assert found.pipelines[0].why == "RuntimeError: here"
    assert not found.passed
    assert heard.names == ["broken", "short"]


def test_what_this_machine_lacks_is_skipped_with_a_reason():
    result = run(replace(READ_AND_DECODE, start_method="teleport"))
    assert (result.outcome, result.runs) == ("skipped", 0)
    assert result.why == "this system cannot start processes by teleport"


def test_a_pipeline_on_few_cores_gives_them_back():
    before = os.sched_getaffinity(0)
    cores = []

    usual = sleeps(0.001, Stage.DECODE)

    def look(stretch):
        cores.append(len(os.sched_getaffinity(0)))
        return usual.do(stretch)

    run(replace(lying(), acts=(replace(usual, do=look),), cores=1), quick=True)
    assert set(cores) == {1}
    assert os.sched_getaffinity(0) == before


def test_ctrl_c_is_heard_again_once_the_workers_have_started():
    run(READ_AND_DECODE, quick=True)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_parts_are_chosen_by_name_and_no_file_is_left(tmp_path, monkeypatch):
    """Not run here: those above are."""
    written = []

    def looked_at(pipeline, quick):
        written.extend(tmp_path.rglob("*"))
        return PipelineResult(pipeline.name, pipeline.says, "right")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "run", looked_at)
    heard = Heard()
    assert check(heard, quick=True, only=["reads", "inline"]).passed
    assert heard.names == ["inline", "reads"]
    assert written
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_refused_and_the_known_ones_are_named():
    with pytest.raises(UsageError, match="the check has no part 'teleport'; its parts are stages,"):
        check(Heard(), only=["inline", "teleport"])
