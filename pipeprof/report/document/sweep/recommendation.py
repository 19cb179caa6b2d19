"""What to set for each data set."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1

from pipeprof.model import Headspace, PairedRuns, RunNoise, SweepAdvice, SweepResult
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import DataSet, trial_at
from pipeprof.report.document.wording import gain, settings, times
from pipeprof.units import format_count, format_duration, percent

_NAME, _TITLE = "recommendation", "Recommendation"
_UNKNOWN = "Unknown until trials have ended."


def recommendation(sweep: SweepResult, found: Sequence[DataSet]) -> doc.Section:
    blocks: list[doc.Block] = []
    for data in found:
        if data.advice is not None:
            blocks += _advice(sweep, data, data.advice)
    return doc.section(_NAME, _TITLE, *blocks, "" if blocks else _UNKNOWN)


def first_recommendation(sweep: SweepResult, found: Sequence[DataSet]) -> doc.Section:
    """Of the data set that is fastest at its best: the change, its gain and its code."""
    advised = [data for data in found if data.advice is not None]
    if not advised:
        return doc.section(_NAME, _TITLE)
    data = max(advised, key=lambda each: each.best.samples_per_s)
    change, *more = _advice(sweep, data, data.advice) if data.advice else []
    brief = doc.figures([("gain", _gain(data))])
    code = (block for block in more if isinstance(block, doc.Code))
    note = "of the fastest data set; the others follow in --full" if len(advised) > 1 else ""
    return doc.section(_NAME, _TITLE, change, brief, *code, note=note)


def _advice(sweep: SweepResult, data: DataSet, found: SweepAdvice) -> list[doc.Block]:
    advice = found.recommendation
    if advice is None:
        return [doc.Subheading(f"{data.label}: keep {settings(data.best.config)}")]
    kept = advice.current == advice.proposed
    change = f"keep {advice.current}" if kept else f"{advice.current} → {advice.proposed}"
    rows = [("gain", _gain(data)), ("why", advice.why)]
    pairs, noise = sweep.paired.get(data.url), sweep.noise.get(data.url)
    if pairs is not None:
        rows.append(("paired runs", _paired(sweep, pairs)))
    if noise is not None and (pairs is None or pairs.difference == "none"):
        rows.append(("unsteady", _unsteady(noise)))
    if data.url in sweep.headspace:
        rows.append(("left to gain", _left(sweep.headspace[data.url])))
    code = [doc.Code(advice.code)] if advice.code else []
    return [doc.Subheading(f"{data.label}: {change}"), doc.figures(rows), *code]


def _gain(data: DataSet) -> str:
    """Empty where the setting is kept."""
    advice = data.advice.recommendation if data.advice else None
    if advice is None or advice.current == advice.proposed:
        return ""
    return gain(advice, data.trials[0].samples_per_s)


def _paired(sweep: SweepResult, pairs: PairedRuns) -> str:
    """What the runs in pairs say of the two best settings; empty if the file names no such ones."""
    both = [trial_at(sweep, index) for index in (pairs.trial, pairs.against)]
    one, other = (settings(trial.config) if trial else "" for trial in both)
    if not (one and other):
        return ""
    low, high = pairs.speed_interval
    found = f"it is {pairs.difference}"
    if pairs.difference == "none":
        found = "no difference that this data can show, so the cheaper is taken"
    return (
        f"in {len(pairs.samples_per_s)} pairs of short runs {one} gives {pairs.speed:.3f}× the "
        f"samples/s of {other} (95 %: {low:.3f}–{high:.3f}): {found}"
    )


def _unsteady(noise: RunNoise) -> str:
    """That single runs cannot tell the settings apart, and what would; empty if they can."""
    if noise.settled or noise.apart is None:
        return ""
    longer = "longer trials would not: what runs differ by lasts longer than they would"
    if noise.needed_trial_s is not None:
        longer = f"trials of {format_duration(noise.needed_trial_s)} would (--trial-time)"
    return (
        f"two runs of one setting differ by up to {percent(expm1(noise.half_width))} here (95 %), "
        f"and the best setting and the next by {percent(expm1(noise.apart))} or less: single "
        f"trials cannot tell them apart; {longer}"
    )


def _left(headspace: Headspace) -> str:
    """By anything else that makes loading faster."""
    low, high = headspace.gain_interval
    return (
        f"{times(headspace.gain)} if data were free ({low:.2f}–{high:.2f}): measured on batches "
        f"that lie in memory, {format_count(headspace.free_samples_per_s)} samples/s against "
        f"{format_count(headspace.samples_per_s)}"
    )
