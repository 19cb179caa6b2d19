"""Run the pipelines one after the other, and compare their results."""

from __future__ import annotations

import logging
import multiprocessing
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader

from pipeprof.errors import UsageError
from pipeprof.loaders.instrument.wrap import wrap
from pipeprof.log import log_caught
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.measure.environment import read_environment
from pipeprof.model import Profile
from pipeprof.selfcheck.clocked import ClockedDataset
from pipeprof.selfcheck.cost import measure_cost
from pipeprof.selfcheck.evaluate import as_planned, evaluate
from pipeprof.selfcheck.pipelines import Pipeline, pipelines, write_files
from pipeprof.selfcheck.results import PipelineResult, ProfilerCost, SelfCheck
from pipeprof.selfcheck.surroundings import (
    few_cores,
    more_workers_than_cores,
    shielded,
    workers_ended_by_ctrl_c,
)
from pipeprof.selfcheck.truth import Iteration, train_epoch

_log = logging.getLogger(__name__)

COST = "overhead"
"""Name of the part that measures the overhead."""
_ATTEMPTS = 3
_JITTER = 0.1
_QUICK_SHARE = 0.35
_LEAST_BATCHES = 40
_COST_S, _QUICK_COST_S = 16.0, 5.0

Report: TypeAlias = Callable[["PipelineResult | ProfilerCost"], None]
"""Called with the result of each part as soon as it is available."""


def check(report: Report, quick: bool = False, only: Sequence[str] = ()) -> SelfCheck:
    """Run the pipelines, or those named in ``only``. Raises `UsageError` for an unknown name."""
    with tempfile.TemporaryDirectory(prefix="pipeprof-") as folder:
        available = pipelines(Path(folder))
        names = [pipeline.name for pipeline in available]
        for name in only:
            if name not in (*names, COST):
                raise UsageError(
                    f"the check has no part {name!r}; its parts are {', '.join(names)} and {COST}"
                )
        chosen = [
            pipeline for pipeline in available
            if (pipeline.name in only if only else pipeline.quick or not quick)
        ]  # fmt: skip
        write_files(Path(folder))
        return check_pipelines(report, chosen, quick, not only or COST in only)


def check_pipelines(
    report: Report, chosen: Sequence[Pipeline], quick: bool, with_cost: bool
) -> SelfCheck:
    results = []
    for pipeline in chosen:
        results.append(run(pipeline, quick))
        report(results[-1])
    cost = None
    if with_cost:
        cost = measure_cost(_QUICK_COST_S if quick else _COST_S)
        report(cost)
    wrong = any(result.outcome in ("off", "failed") for result in results)
    beyond = cost is not None and "beyond" in (cost.wall.status, cost.cpu.status)
    return SelfCheck(
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        environment=read_environment("emulated: sleeps instead of training steps"),
        quick=quick,
        passed=not wrong and not beyond,
        pipelines=tuple(results),
        cost=cost,
    )


def run(pipeline: Pipeline, quick: bool = False) -> PipelineResult:
    """Run a pipeline and compare. Repeat it once or twice when the machine did not let it run as
    planned.

    It is also repeated when something was off. A process that loses its core between the pipeline's
    reading of the clock and ours shows a difference that is no error. A real error recurs.
    """
    if lacking := _lacking(pipeline):
        return PipelineResult(pipeline.name, pipeline.says, "skipped", lacking)
    results: list[PipelineResult] = []
    while len(results) < _ATTEMPTS:
        results.append(_run_once(pipeline, quick))
        outcomes = [result.outcome for result in results]
        if outcomes[-1] in ("right", "failed") or outcomes.count("off") == 2:
            break
    *earlier, last = results
    before = "; ".join(f"in run {n}: {one.why}" for n, one in enumerate(earlier, 1))
    why = f"{last.why} ({before})" if last.why and before else last.why or before
    return replace(last, why=why, runs=len(results))


def _lacking(pipeline: Pipeline) -> str:
    """Return what the machine lacks to run the pipeline; empty when nothing."""
    if pipeline.workers and pipeline.start_method not in multiprocessing.get_all_start_methods():
        return f"this system cannot start processes by {pipeline.start_method}"
    if pipeline.pin_memory and not torch.cuda.is_available():
        return "no CUDA device, so torch pins nothing"
    return ""


def _run_once(pipeline: Pipeline, quick: bool) -> PipelineResult:
    try:
        iterations, profile = _profile(pipeline, quick)
    except Exception as error:
        log_caught(_log, error, f"pipeline {pipeline.name} has no result")
        error.__traceback__ = None  # it refers to the iterator, which keeps the workers alive
        line = (str(error).strip() or "no message").splitlines()[-1]
        why = f"{type(error).__name__}: {line}"
        return PipelineResult(pipeline.name, pipeline.says, "failed", why)
    result, truth = evaluate(pipeline, iterations, profile), pipeline.truth
    if as_planned(pipeline, iterations, profile.diagnosis.threshold):
        return result
    cause = f" by {truth.culprits[0]}" if truth.verdict == "starved" else ""
    why = f"the run was not {truth.verdict}{cause} as planned: the machine is too busy"
    return replace(result, outcome="unsettled", why=why)


def _profile(pipeline: Pipeline, quick: bool) -> tuple[list[Iteration], Profile]:
    """Return the steady-state iterations, and the profile that measured them."""
    accelerator = EmulatedAccelerator(pipeline.step_s)
    with few_cores(pipeline.cores), more_workers_than_cores(), workers_ended_by_ctrl_c():
        # each batch is compared with its own truth, so none may be left out
        loader = wrap(_loader(pipeline, quick), pipeline.name, accelerator.label, whole=True)
        iterations = train_epoch(shielded(loader), accelerator.step)
        profile = loader.profile()
    return iterations[len(iterations) - profile.measured_batches :], profile


def _loader(pipeline: Pipeline, quick: bool) -> DataLoader[Any]:
    batches = pipeline.batches
    if quick:
        batches = max(_LEAST_BATCHES, round(batches * _QUICK_SHARE))
    samples = batches * pipeline.batch_size
    return DataLoader(
        ClockedDataset(samples, pipeline.acts, _JITTER, pipeline.slow_every, pipeline.slow_by),
        batch_size=pipeline.batch_size,
        num_workers=pipeline.workers,
        collate_fn=pipeline.collate,
        multiprocessing_context=pipeline.start_method if pipeline.workers else None,
        pin_memory=pipeline.pin_memory,
    )
