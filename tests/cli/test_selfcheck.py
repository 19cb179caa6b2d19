"""`pipeprof selfcheck` as a user runs it: real loaders, the figures, the exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from pipeprof.cli.app import run
from pipeprof.cli.selfcheck_page import selfcheck_document
from pipeprof.model import LoaderConfig
from pipeprof.report.terminal.render import render_terminal
from pipeprof.selfcheck import run as module
from pipeprof.selfcheck.pipelines import pipelines
from pipeprof.selfcheck.results import (
    CheckedFigure,
    Claim,
    CostComparison,
    PipelineResult,
    ProfilerCost,
    SelfCheck,
)
from tests.samples import ENVIRONMENT
from tests.support.env import UNWATCHED

QUICK = ["selfcheck", "--quick", "--only", "inline"]


@pytest.mark.timed
def test_it_shows_truth_and_measurement_of_each_stage(capsys):
    assert run(QUICK) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("PASSED: 1 of 1 pipeline right.\n")
    assert "inline: right  sleeps in named stages, no workers" in shown.out
    rows = [line.split() for line in shown.out.splitlines()]
    for stage in ("read", "decode", "transform", "fetch", "collate", "wait", "step"):
        (row,) = [row for row in rows if row[:1] == [stage]]
        assert len(row) == 9, "a name, four figures with units, and no flag"
    assert "verdict starved" in shown.out
    assert shown.err.startswith("  inline      right")


@pytest.fixture
def lie(monkeypatch):
    """Let the truth of each pipeline be another than it is."""

    def falsified(folder):
        return [
            replace(one, truth=replace(one.truth, finding="no-such-thing"))
            for one in pipelines(folder)
        ]

    monkeypatch.setattr(module, "pipelines", falsified)


@pytest.mark.timed
@pytest.mark.usefixtures("lie")
def test_a_truth_that_is_not_met_exits_with_1(capsys):
    assert run(QUICK) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("FAILED: 0 of 1 pipeline right; off: inline.\n")
    assert ": OFF, it is no-such-thing" in " ".join(shown.out.split())
    assert shown.err.startswith("  inline      off: finding")


@pytest.mark.timed
def test_json_is_all_that_is_on_stdout(capsys):
    assert run([*QUICK, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    document = json.loads(shown.out)
    assert document["schema"] == "pipeprof.selfcheck/1"
    assert (document["passed"], document["quick"], document["cost"]) == (True, True, None)
    (pipeline,) = document["pipelines"]
    assert (pipeline["name"], pipeline["outcome"]) == ("inline", "right")
    assert pipeline["config"]["num_workers"] == 0
    decode = next(figure for figure in pipeline["figures"] if figure["name"] == "decode")
    assert decode["status"] == "right"
    assert abs(decode["measured_s"] - decode["truth_s"]) <= decode["bar_s"]
    assert {claim["name"] for claim in pipeline["claims"] if claim["holds"]} == {
        "verdict",
        "starved",
        "to blame",
        "blame adds up to",
        "batches observed",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "teleport"], "the check has no part 'teleport'; its parts are stages,"),
        (["--frobnicate"], "frobnicate"),
        (["stages"], "unexpected extra argument"),
    ],
)
def test_a_wrong_call_exits_with_2(arguments, words, capsys):
    assert run(["selfcheck", *arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


RIGHT = CheckedFigure("read", 0.002, 0.0021, 0.0006, "right")
OFF = CheckedFigure("decode", 0.006, 0.0075, 0.0006, "off")
UNKNOWN = CheckedFigure("cpu", 0.004, None, 0.0006, "unknown")
QUIET = CostComparison(0.004, (0.001, 0.007), 0.0, (-0.002, 0.003), "within")
NOISY = CostComparison(0.02, (-0.05, 0.09), 0.03, (-0.07, 0.12), "inconclusive")


def made_up(*pipelines, cost=None, passed=True):
    return SelfCheck("2026-01-31T14:25:01+00:00", ENVIRONMENT, False, passed, pipelines, cost)


def made_up_pipeline(outcome="right", why="", **changes):
    config = LoaderConfig(2, prefetch_factor=2, batch_size=1, start_method="fork")
    return PipelineResult("made-up", "is made up", outcome, why, config, 20, 0.020, **changes)


def text_of(check):
    return render_terminal(selfcheck_document(check))


def test_each_figure_stands_beside_its_truth_and_its_bar():
    result = made_up_pipeline("off", "decode", figures=(RIGHT, OFF, UNKNOWN), runs=2)
    lines = [line.strip() for line in text_of(made_up(result, passed=False)).splitlines()]
    assert lines[0] == "FAILED: 0 of 1 pipeline right; off: made-up."
    assert "2 workers, prefetch 2, batch 1, fork; 20 batches of 20.0 ms" in lines
    rows = [" ".join(line.split()) for line in lines]
    assert "read 2.00 ms 2.10 ms 100 µs 600 µs" in rows
    assert "decode 6.00 ms 7.50 ms 1.50 ms 600 µs OFF" in rows
    assert "cpu 4.00 ms unknown 600 µs UNKNOWN" in rows


def test_json_of_what_is_off_exits_with_1_too(monkeypatch, capsys):
    off = made_up(made_up_pipeline("off", "decode", figures=(OFF,)), passed=False)
    monkeypatch.setattr(module, "check", lambda watch, quick, only: off)
    assert run([*QUICK, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


def test_what_did_not_run_says_why():
    skipped = PipelineResult("pin", "pins", "skipped", "no CUDA device")
    open_ = made_up_pipeline("unsettled", "the machine is too busy")
    text = text_of(made_up(made_up_pipeline(), skipped, open_))
    assert text.startswith("PASSED: 1 of 1 pipeline right; unsettled: made-up; skipped: pin.\n")
    assert "pin: skipped  pins\n  no CUDA device\n" in text
    assert "made-up: unsettled  is made up\n  the machine is too busy\n" in text


def test_a_claim_that_does_not_hold_says_what_is_true():
    claims = (Claim("verdict", "fed", "starved", False), Claim("starved", "60 %", "61 %", True))
    text = text_of(made_up(made_up_pipeline("off", "verdict", claims=claims)))
    assert "verdict starved: OFF, it is fed; starved 61 % (truth 60 %)" in text


def test_the_cost_stands_beside_its_control():
    text = text_of(made_up(cost=ProfilerCost(0.0015, 30, 110, QUIET, QUIET)))
    assert text.startswith("PASSED: overhead within.\n")
    words = " ".join(text.split())
    assert "30 rounds of 110 batches; 1.50 ms a plain batch" in words
    assert "wall time +0.40 % +0.10 % to +0.70 % +0.00 % -0.20 % to +0.30 % within" in words
    noisy = text_of(made_up(cost=ProfilerCost(0.0015, 30, 110, NOISY, QUIET)))
    assert noisy.startswith("PASSED: overhead inconclusive.\n")
    assert "repeat the check on an idle machine" in " ".join(noisy.split())


@pytest.mark.parametrize("after_s", [0.1, 1.5])
def test_ctrl_c_ends_it_without_a_word_from_the_workers(after_s, tmp_path_factory):
    """While two workers are spawned, and while they work."""
    # a short name: multiprocessing makes sockets in it, whose paths have 107 characters at most
    tmp_path = tmp_path_factory.mktemp("check")
    running = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", "pipeprof", "selfcheck", "--only", "spawn"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**UNWATCHED, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    while not list(tmp_path.glob("pipeprof-*/*")):
        assert running.poll() is None, running.communicate()
        time.sleep(0.02)
    time.sleep(after_s)
    # as a terminal does: to the whole group, workers included
    os.killpg(running.pid, signal.SIGINT)
    try:
        stdout, stderr = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.kill(running.pid, signal.SIGABRT)  # it then prints where it stands
        pytest.fail(f"it did not end: {running.communicate()[1]}")
    assert (running.returncode, stdout) == (130, "")
    # of a semaphore that is being removed just then, multiprocessing's tracker has its own to say
    printed = re.sub(r".*resource_tracker.*\n  warnings\.warn\(.*\n", "", stderr)
    assert printed.strip() == "pipeprof: interrupted."
    # multiprocessing's own folder may stay behind a worker that was handing over a tensor
    assert [each for each in tmp_path.iterdir() if not each.name.startswith("pymp-")] == []
