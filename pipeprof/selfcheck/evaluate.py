"""Compare the true times with what pipeprof reports, and apply the limits. Nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeprof.model import Profile
from pipeprof.selfcheck.pipelines import Pipeline, Truth
from pipeprof.selfcheck.results import CheckedFigure, Claim, PipelineResult, Status
from pipeprof.selfcheck.truth import (
    AWAITED,
    OFF_CORE,
    Floats,
    Iteration,
    Mask,
    charges,
    read_in,
    true_seconds,
)
from pipeprof.units import format_duration, format_share

BAR_SHARE = 0.03
"""Allowed error as a share of a batch's wall time. The larger of this and `BAR_S` applies."""
BAR_S = 0.0002
"""Allowed error of a figure in seconds."""
BLAME_BAR = 0.01
"""Allowed difference between the sum of the blame and the stall, as a share of the stall."""
RESOURCES = ("cpu", OFF_CORE, "run-queue", "blocked")
"""Resources that not every kernel reports."""


def evaluate(
    pipeline: Pipeline, iterations: Sequence[Iteration], profile: Profile
) -> PipelineResult:
    """Compare ``iterations`` with the profile that measured the same batches."""
    truth = true_seconds(iterations)
    batch_s = float(np.mean(truth["wait"] + truth["step"]))
    compared = [_figure(name, truth, batch_s, profile) for name in pipeline.truth.figures]
    figures = tuple(figure for figure in compared if figure is not None)
    claims = _claims(pipeline.truth, iterations, float(np.mean(truth["wait"])) / batch_s, profile)
    wrong = [figure.name for figure in figures if figure.status == "off"]
    wrong += [claim.name for claim in claims if not claim.holds]
    return PipelineResult(
        pipeline.name, pipeline.says, "off" if wrong else "right", ", ".join(wrong),
        profile.config, len(iterations), batch_s, figures, tuple(claims),
    )  # fmt: skip


def as_planned(pipeline: Pipeline, iterations: Sequence[Iteration], threshold: float) -> bool:
    """Return whether the run was clearly starved or fed as planned, and for the planned cause. On a
    busy machine even a loader that is fast enough may be late."""
    stalled_s = sum(iteration.delivered_s - iteration.asked_s for iteration in iterations)
    share = stalled_s / sum(iteration.done_s - iteration.asked_s for iteration in iterations)
    if pipeline.truth.verdict == "fed":
        return share < threshold / 2
    charged = {name: float(charge.sum()) for name, charge in charges(iterations).items()}
    place = max(charged, key=charged.__getitem__)
    return share > threshold * 2 and place in pipeline.truth.places


def _figure(
    name: str, truth: Mapping[str, Floats], batch_s: float, profile: Profile
) -> CheckedFigure | None:
    """Compare one figure. ``None`` where there is no truth, e.g. when main never waited for the
    pipe."""
    seconds = truth[name]
    if name in RESOURCES:
        seconds = seconds[_sampled(name, profile, len(seconds))]
    if not np.isfinite(seconds).any():
        return None
    true_s = float(np.nanmean(seconds))
    measured_s = _measured(name, profile)
    bar_s = max(BAR_SHARE * batch_s, BAR_S)
    status: Status = "off"
    if measured_s is None and name in (*RESOURCES, *profile.missing):
        status = "unknown"
    elif measured_s is not None and abs(measured_s - true_s) <= bar_s:
        status = "right"
    return CheckedFigure(name, true_s, measured_s, bar_s, status)


def _sampled(name: str, profile: Profile, count: int) -> Mask:
    """Return for which of the last ``count`` batches the resource ``name`` was sampled. Shape:
    [count]."""
    column = profile.batches.cpu_s if name == "cpu" else profile.batches.runqueue_s
    sampled = column[-count:]
    if len(sampled) < count:
        return np.ones(count, dtype=bool)
    return np.array([value is not None for value in sampled])


def _measured(name: str, profile: Profile) -> float | None:
    """Return seconds per batch; ``None`` when ``profile`` does not have the figure."""
    if name.startswith(AWAITED):
        waited_s = profile.awaited_in.get(name.removeprefix(AWAITED), 0.0)
        return waited_s / profile.measured_batches
    if name == OFF_CORE:
        parts = [profile.resources.get(part) for part in ("run-queue", "blocked")]
        return sum(part.mean_s for part in parts if part) if all(parts) else None
    stats = profile.stages.get(name) or profile.resources.get(name)
    return stats.mean_s if stats else None


def _claims(
    truth: Truth, iterations: Sequence[Iteration], share: float, profile: Profile
) -> list[Claim]:
    """Check what pipeprof reports besides figures. ``share`` is the true starved fraction."""
    diagnosis, fetch, read = (
        profile.diagnosis,
        profile.stages.get("fetch"),
        profile.stages.get("read"),
    )
    charged_s, culprit = sum(profile.blame.values()), diagnosis.bottleneck or "nothing"
    starved, error = diagnosis.starved_fraction, abs(diagnosis.starved_fraction - share)
    claims = [
        Claim("verdict", truth.verdict, diagnosis.verdict, diagnosis.verdict == truth.verdict),
        Claim("starved", format_share(share), format_share(starved), error <= BAR_SHARE),
        Claim("to blame", truth.culprits[0], culprit, diagnosis.bottleneck in truth.culprits),
        Claim(
            "blame adds up to", format_duration(profile.stall_s), format_duration(charged_s),
            abs(charged_s - profile.stall_s) <= BLAME_BAR * profile.stall_s,
        ),
        _exact_claim("batches observed", len(iterations), fetch.count if fetch else 0),
    ]  # fmt: skip
    if "read" not in profile.missing:
        for quantity in truth.counted:
            count = getattr(read, quantity) if read else 0
            claims.append(_exact_claim(f"{quantity} read", read_in(iterations, quantity), count))
    if truth.finding is not None:
        codes = [finding.code for finding in profile.findings]
        listed = ", ".join(codes) or "nothing"
        claims.append(Claim("finding", truth.finding, listed, truth.finding in codes))
    if not truth.more_workers:
        advised = _worker_advice(profile)
        claims.append(Claim("advice", "not more workers", advised or "none", not advised))
    return claims


def _exact_claim(name: str, expected: int, found: int) -> Claim:
    return Claim(name, f"{expected:,}", f"{found:,}", expected == found)


def _worker_advice(profile: Profile) -> str:
    """Return the recommendation to use more workers; empty when there is none."""
    for advice in profile.recommendations:
        proposed = advice.proposed
        more = proposed.isdecimal() and int(proposed) > profile.config.num_workers
        if "num_workers" in advice.setting and more:
            return f"num_workers: {advice.current} → {proposed}"
    return ""
