"""Present the recommended setting of each data set, and how firmly the trials support it."""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.model import Headspace, PairedRuns, RunNoise, SweepAdvice, SweepResult, Trial
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import DataSet, trial_at
from pipeprof.report.document.wording import gain, relative, settings, times
from pipeprof.units import format_count, format_duration

_NAME, _TITLE = "recommendation", "Recommendation"
_UNKNOWN = "Unknown until trials have ended."


def recommendation(sweep: SweepResult, data_sets: Sequence[DataSet]) -> doc.Section:
    """Return the recommended setting of each data set with its evidence and code."""
    blocks: list[doc.Block] = []
    for data in data_sets:
        if data.advice is not None:
            blocks += _advice(sweep, data, data.advice)
    return doc.section(_NAME, _TITLE, *blocks, "" if blocks else _UNKNOWN)


def first_recommendation(sweep: SweepResult, data_sets: Sequence[DataSet]) -> doc.Section:
    """Return only the recommendation for the fastest data set: the change, its gain and code."""
    advised = [data for data in data_sets if data.advice is not None]
    if not advised:
        return doc.section(_NAME, _TITLE)
    data = max(advised, key=lambda each: each.best.samples_per_s)
    change, *more = _advice(sweep, data, data.advice) if data.advice else []
    brief = doc.figures([("gain", _gain(data))])
    code = (block for block in more if isinstance(block, doc.Code))
    note = "of the fastest data set; the others follow in --full" if len(advised) > 1 else ""
    return doc.section(_NAME, _TITLE, change, brief, *code, note=note)


def _advice(sweep: SweepResult, data: DataSet, advised: SweepAdvice) -> list[doc.Block]:
    advice = advised.recommendation
    if advice is None:
        return [doc.Subheading(f"{data.label}: keep {settings(data.best.config)}")]
    kept = advice.current == advice.proposed
    change = f"keep {advice.current}" if kept else f"{advice.current} → {advice.proposed}"
    rows = [("gain", _gain(data)), ("why", advice.why)]
    pairs, noise = sweep.paired.get(data.url), sweep.noise.get(data.url)
    if pairs is not None:
        rows.append(("paired runs", _paired(sweep, pairs, advised.best_trial)))
    if noise is not None and (pairs is None or pairs.difference == "none"):
        rows.append(("noise", _noise(noise)))
    if data.url in sweep.headspace:
        rows.append(("headroom", _headroom(sweep.headspace[data.url])))
    code = [doc.Code(advice.code)] if advice.code else []
    return [doc.Subheading(f"{data.label}: {change}"), doc.figures(rows), *code]


def _gain(data: DataSet) -> str:
    """Return the gain of the change; empty where the setting is kept."""
    advice = data.advice.recommendation if data.advice else None
    if advice is None or advice.current == advice.proposed:
        return ""
    return gain(advice, data.trials[0].samples_per_s)


def _paired(sweep: SweepResult, pairs: PairedRuns, best: int) -> str:
    """Compare the two best settings by paired runs, of which ``best`` is recommended; empty if the
    file names no such trials."""
    both = [trial_at(sweep, index) for index in (pairs.trial, pairs.against)]
    one, other = (settings(trial.config) if trial else "" for trial in both)
    if not (one and other):
        return ""
    low, high = pairs.speed_interval
    conclusion = f"it is {pairs.difference}"
    if pairs.difference == "none":
        cheaper = min((pairs.trial, pairs.against), key=lambda index: _cost(sweep.trials[index]))
        chosen = "the cheaper setting" if best == cheaper else "the one with the higher mean"
        conclusion = f"no difference can be shown, so {chosen} is recommended"
    return (
        f"in {len(pairs.samples_per_s)} pairs of short runs {one} gives {pairs.speed:.3f}× the "
        f"samples/s of {other} (95 %: {low:.3f}–{high:.3f}): {conclusion}"
    )


def _cost(trial: Trial) -> tuple[int, int]:
    return trial.config.num_workers, trial.config.prefetch_factor or 0


def _noise(noise: RunNoise) -> str:
    """Say if noise hides which setting is best, and whether longer trials help; empty if not."""
    if noise.settled or noise.apart is None:
        return ""
    longer = "Longer trials would not either: the noise lasts longer than a trial."
    if noise.needed_trial_s is not None:
        longer = f"Trials of {format_duration(noise.needed_trial_s)} can (--trial-time)."
    return (
        f"Two runs of one setting differ by up to {relative(noise.half_width)} (95 %), and "
        f"the two best settings by {relative(noise.apart)} or less. Single trials cannot "
        f"tell which is better. {longer}"
    )


def _headroom(headspace: Headspace) -> str:
    """Return the gain if loading took no time: the most that any faster loading can bring."""
    low, high = headspace.gain_interval
    return (
        f"{times(headspace.gain)} ({low:.2f}–{high:.2f}) if loading took no time: "
        f"{format_count(headspace.free_samples_per_s)} samples/s with batches from memory, against "
        f"{format_count(headspace.samples_per_s)}"
    )
