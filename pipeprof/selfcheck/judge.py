"""The truth compared with what pipeprof says, and the bars. Nothing runs here."""

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
    Mask,
    Taken,
    charges,
    read_in,
    true_seconds,
)
from pipeprof.units import format_duration, format_share

BAR_SHARE = 0.03
"""Of a batch's wall time …"""
BAR_S = 0.0002
"""… or this, whichever is larger, may lie between a figure and the truth."""
BLAME_BAR = 0.01
"""Share of the stall by which the sum of the blame may be off."""
RESOURCES = ("cpu", OFF_CORE, "run-queue", "blocked")
"""Resources that not every kernel reports."""


def judge(pipeline: Pipeline, turns: Sequence[Taken], profile: Profile) -> PipelineResult:
    """Compare ``turns``, which are those that ``profile`` measured, with what that says."""
    truth = true_seconds(turns)
    batch_s = float(np.mean(truth["wait"] + truth["step"]))
    asked = [_figure(name, truth, batch_s, profile) for name in pipeline.truth.figures]
    figures = tuple(figure for figure in asked if figure is not None)
    claims = _claims(pipeline.truth, turns, float(np.mean(truth["wait"])) / batch_s, profile)
    wrong = [figure.name for figure in figures if figure.status == "off"]
    wrong += [claim.name for claim in claims if not claim.holds]
    return PipelineResult(
        pipeline.name, pipeline.says, "off" if wrong else "right", ", ".join(wrong),
        profile.config, len(turns), batch_s, figures, tuple(claims),
    )  # fmt: skip


def as_planned(pipeline: Pipeline, turns: Sequence[Taken], threshold: float) -> bool:
    """Whether the run was as clearly starved, or fed, as planned, and for the planned cause. On a
    machine that is busy with other things even a loader that is fast enough comes late."""
    stalled_s = sum(turn.delivered_s - turn.asked_s for turn in turns)
    share = stalled_s / sum(turn.done_s - turn.asked_s for turn in turns)
    if pipeline.truth.verdict == "fed":
        return share < threshold / 2
    charged = {name: float(charge.sum()) for name, charge in charges(turns).items()}
    place = max(charged, key=charged.__getitem__)  # where the awaited batches mostly were
    return share > threshold * 2 and place in pipeline.truth.places


def _figure(
    name: str, truth: Mapping[str, Floats], batch_s: float, profile: Profile
) -> CheckedFigure | None:
    """``None`` where there is no truth: of the pipe, when main never waited for it."""
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
    """For which of the last ``count`` batches the resource ``name`` was sampled."""
    column = profile.batches.cpu_s if name == "cpu" else profile.batches.runqueue_s
    seen = column[-count:]
    if len(seen) < count:
        return np.ones(count, dtype=bool)
    return np.array([value is not None for value in seen])


def _measured(name: str, profile: Profile) -> float | None:
    """Seconds per batch; ``None`` when ``profile`` does not show it."""
    if name.startswith(AWAITED):
        waited_s = profile.awaited_in.get(name.removeprefix(AWAITED), 0.0)
        return waited_s / profile.measured_batches
    if name == OFF_CORE:
        parts = [profile.resources.get(part) for part in ("run-queue", "blocked")]
        return sum(part.mean_s for part in parts if part) if all(parts) else None
    stats = profile.stages.get(name) or profile.resources.get(name)
    return stats.mean_s if stats else None


def _claims(truth: Truth, turns: Sequence[Taken], share: float, profile: Profile) -> list[Claim]:
    """What pipeprof claims besides figures. ``share``: the true starved fraction."""
    said, fetch, read = profile.diagnosis, profile.stages.get("fetch"), profile.stages.get("read")
    charged_s, culprit = sum(profile.blame.values()), said.bottleneck or "nothing"
    starved, off = said.starved_fraction, abs(said.starved_fraction - share)
    claims = [
        Claim("verdict", truth.verdict, said.verdict, said.verdict == truth.verdict),
        Claim("starved", format_share(share), format_share(starved), off <= BAR_SHARE),
        Claim("to blame", truth.culprits[0], culprit, said.bottleneck in truth.culprits),
        Claim(
            "blame adds up to", format_duration(profile.stall_s), format_duration(charged_s),
            abs(charged_s - profile.stall_s) <= BLAME_BAR * profile.stall_s,
        ),
        _same("batches seen being made", len(turns), fetch.count if fetch else 0),
    ]  # fmt: skip
    if "read" not in profile.missing:
        for what in truth.counted:
            found = getattr(read, what) if read else 0
            claims.append(_same(f"{what} read", read_in(turns, what), found))
    if truth.finding is not None:
        codes = [finding.code for finding in profile.findings]
        listed = ", ".join(codes) or "nothing"
        claims.append(Claim("finding", truth.finding, listed, truth.finding in codes))
    if not truth.more_workers:
        advised = _more_workers(profile)
        claims.append(Claim("advice", "not more workers", advised or "none", not advised))
    return claims


def _same(name: str, expected: int, found: int) -> Claim:
    return Claim(name, f"{expected:,}", f"{found:,}", expected == found)


def _more_workers(profile: Profile) -> str:
    """The advice to use more workers; empty when there is none."""
    for advice in profile.recommendations:
        proposed = advice.proposed
        more = proposed.isdecimal() and int(proposed) > profile.config.num_workers
        if "num_workers" in advice.setting and more:
            return f"num_workers: {advice.current} → {proposed}"
    return ""
