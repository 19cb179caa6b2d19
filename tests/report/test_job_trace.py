"""The steps of all ranks of a job on one clock, as a Chrome trace."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

import pipeprof
from pipeprof.cli.app import run
from pipeprof.errors import UsageError
from pipeprof.report.trace.job import render_job_trace
from tests.analyze.test_job import STEPS, of_rank
from tests.cli.test_gather import profile, save

WAITS_S = np.array([[0.001] * STEPS, [0.011] * STEPS])
ENDS_S = np.arange(STEPS + 1) * 0.021


def test_ranks_of_hosts_whose_clocks_differ_end_each_step_together():
    ranks = [of_rank(rank, 3600.0 * rank + ENDS_S, WAITS_S[rank], "ab"[rank], "decode_s")
             for rank in (0, 1)]  # fmt: skip
    events = json.loads(render_job_trace(ranks, compressed=False))["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names == ["rank 0, a", "rank 1, b"]
    spans = [event for event in events if event["ph"] == "X"]
    ends = [
        [
            each["ts"] + each["dur"]
            for each in spans
            if each["tid"] == track and each["name"] == "step"
        ]
        for track in (1, 2)
    ]
    assert ends[0] == ends[1]
    assert len(ends[0]) == STEPS
    waits = {each["tid"]: each["dur"] for each in spans if each["name"] == "wait"}
    assert waits == {1: 1000, 2: 11_000}


def test_ranks_without_a_common_step_are_no_picture():
    early, late = of_rank(0, ENDS_S, WAITS_S[0], "a", "decode_s"), profile(1)
    epoch = tuple(1 for _ in late.batches.epoch)
    other = replace(late, batches=replace(late.batches, epoch=epoch))
    with pytest.raises(UsageError, match="no recorded step in common"):
        render_job_trace([early, other], compressed=False)


def test_the_command_writes_it(tmp_path, capsys):
    folder, out = save(tmp_path / "run", profile(0), profile(1)), tmp_path / "job.json.gz"
    assert run(["gather", str(folder), "--trace", str(out)]) == 0
    assert f"{out}: open it in ui.perfetto.dev" in " ".join(capsys.readouterr().err.split())
    tracks = {
        event["tid"] for event in json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    }
    assert tracks == {1, 2}


def test_a_tracker_gets_flat_figures_of_the_job(tmp_path):
    (job,) = pipeprof.gather(save(tmp_path / "run", profile(0), profile(1)))
    figures = job.metrics()
    assert figures["pipeprof/job/ranks"] == 2
    assert figures["pipeprof/job/starved_fraction"] == pytest.approx(11 / 21, abs=0.01)
    assert figures["pipeprof/job/worst_rank"] == 1
    assert figures["pipeprof/job/blame/decode"] == pytest.approx(1)
    assert figures["pipeprof/job/gain_without/loading"] > 0.9
    assert all(isinstance(value, float) for value in figures.values())
    assert job.metrics("x/").keys() == {name.replace("pipeprof/", "x/") for name in figures}
