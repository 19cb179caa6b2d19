"""A sweep: what to set for each data set, how the data sets compare, and every trial."""

from __future__ import annotations

from collections import Counter

from pipeprof.model import (
    Headspace,
    PairedRuns,
    SweepResult,
    SweepSpec,
    Trial,
    Untried,
)
from pipeprof.report.data_sets import DataSet, data_sets, own_data_sets
from pipeprof.report.layout import Column, Page, opening_word
from pipeprof.report.phrases import count_range, gain, is_emulated, machine, rule, settings, times
from pipeprof.report.terminal_gains import gains_section, trial_at
from pipeprof.report.terminal_noise import run_to_run, too_unsteady
from pipeprof.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_share,
)


def sweep_page(page: Page, sweep: SweepResult) -> None:
    found = data_sets(sweep)
    own = own_data_sets(sweep)
    _verdicts(page, sweep, own)
    gains_section(page, sweep, _label(sweep))
    what_to_set(page, sweep, own)
    if len(own) > 1:
        _comparison(page, sweep, own)
    for data in found:
        _trials(page, sweep, data)
    how_sure(page, sweep)


def _verdicts(page: Page, sweep: SweepResult, found: list[DataSet]) -> None:
    if not found:
        page.line("No trial has ended, so there is nothing to say yet.", indent=0)
    widest = max((len(data.label) for data in found), default=0)
    for data in found:
        headline = data.advice.headline if data.advice else _so_far(data)
        page.verdict(opening_word(data.best), headline, of=data.label.ljust(widest))
    if _emulated(sweep):
        page.gap()
        page.line(f"The accelerator is {sweep.environment.accelerator}.", indent=0)
    if not sweep.finished:
        page.gap()
        page.line(
            f"Unfinished: {len(sweep.trials)} of {sweep.planned} trials have run. "
            "To go on: pipeprof sweep --resume FOLDER, with the folder of this sweep's file.",
            indent=0,
        )


def _so_far(data: DataSet) -> str:
    starved = format_share(data.best.starved_fraction)
    return f"best so far, with {settings(data.best.config)}: {starved} of the time."


def what_to_set(page: Page, sweep: SweepResult, found: list[DataSet]) -> None:
    advised = [data for data in found if data.advice]
    if not advised:
        return
    page.heading("What to set")
    for data in advised:
        advice = data.advice.recommendation if data.advice else None
        if advice is None:
            page.line(f"{data.label}: keep {settings(data.best.config)}")
            continue
        rows = [("why", advice.why)]
        if advice.current == advice.proposed:
            page.line(f"{data.label}: keep {advice.current}")
        else:
            page.line(f"{data.label}: {advice.current} → {advice.proposed}")
            rows.insert(0, ("gain", gain(advice, data.trials[0].samples_per_s)))
        if data.url in sweep.paired:
            rows += _by_turns(sweep, sweep.paired[data.url])
        noise, pairs = sweep.noise.get(data.url), sweep.paired.get(data.url)
        if noise is not None and (pairs is None or pairs.difference == "none"):
            rows += too_unsteady(noise)
        if data.url in sweep.headspace:
            rows.append(("left", _left(sweep.headspace[data.url])))
        page.pairs(rows, indent=4)
        if advice.code:
            page.code(advice.code)


def _by_turns(sweep: SweepResult, pairs: PairedRuns) -> list[tuple[str, str]]:
    """What the runs in pairs say of the two best settings, if the file is what it should be."""
    both = [trial_at(sweep, index) for index in (pairs.trial, pairs.against)]
    one, other = (settings(trial.config) if trial else "" for trial in both)
    if not (one and other):
        return []
    low, high = pairs.speed_interval
    told = f"it is {pairs.difference}"
    if pairs.difference == "none":
        told = "no difference that this data can show, so the cheaper is taken"
    said = (
        f"in {len(pairs.samples_per_s)} pairs of short runs {one} gives {pairs.speed:.3f}× the "
        f"samples/s of {other} (95 %: {low:.3f}–{high:.3f}): {told}"
    )
    return [("by turns", said)]


def _left(headspace: Headspace) -> str:
    """To gain by anything else that makes loading faster."""
    low, high = headspace.gain_interval
    return (
        f"{times(headspace.gain)} if data were free ({low:.2f}–{high:.2f}): measured on batches "
        f"that lie in memory, {format_count(headspace.free_samples_per_s)} samples/s against "
        f"{format_count(headspace.samples_per_s)}"
    )


def _comparison(page: Page, sweep: SweepResult, found: list[DataSet]) -> None:
    page.heading("Data sets at their best", _label(sweep))
    columns = [Column("data set", right=False, wraps=True)]
    columns += [Column(title, spare=_SPARE.get(title, 0)) for title in COMPARED]
    page.table(columns, compared(found))
    page.line(_choice(found))


COMPARED = ("samples/s", "95 %", "speed", "starved", "bytes/sample")
_SPARE = {"95 %": 1, "speed": 2}


def compared(found: list[DataSet]) -> list[tuple[str, ...]]:
    """Of each data set at its best: its label, and what `COMPARED` names."""
    slowest = min(data.best.samples_per_s for data in found)
    return [
        (
            data.label,
            format_count(data.best.samples_per_s),
            count_range(data.best.interval),
            times(data.best.samples_per_s / slowest) if slowest > 0 else "",
            format_share(data.best.starved_fraction),
            format_bytes(data.best.bytes_per_sample),
        )
        for data in found
    ]


def _choice(found: list[DataSet]) -> str:
    """Which data set to prefer, as far as the intervals allow to say."""
    fed = [data for data in found if data.best.verdict == "fed"]
    if len(fed) > 1:
        leanest = min(fed, key=lambda data: data.best.bytes_per_sample)
        names = ", ".join(data.label for data in fed)
        size = format_bytes(leanest.best.bytes_per_sample)
        return f"{names} feed the accelerator; {leanest.label} reads the least, {size} a sample."
    first, second = sorted(found, key=lambda data: -data.best.samples_per_s)[:2]
    if first.best.interval[0] <= second.best.interval[1]:
        return f"{first.label} and {second.label} are too close to call."
    ratio = times(first.best.samples_per_s / max(second.best.samples_per_s, 1e-9))
    return f"{first.label} is the fastest: {ratio} the samples/s of {second.label}."


def _trials(page: Page, sweep: SweepResult, data: DataSet) -> None:
    page.heading(f"Trials: {data.label}", _label(sweep))
    if data.url != data.label:
        page.line(data.url)
    page.table(
        [
            Column(right=False),
            *(Column(title) for title in ("workers", "prefetch", "batch", "samples/s")),
            Column("95 % +/-", spare=2),
            Column("spread", spare=1),
            Column("starved"),
            Column("verdict", right=False, spare=3),
            Column("to blame", right=False, wraps=True),
        ],
        [_trial_cells(trial, trial is data.best) for trial in data.trials],
    )
    reason = "the setting to use" if data.best.verdict == "fed" else "the best of those tried"
    page.line(f"* {reason}; its profile is {data.best.profile}, beside this sweep's file.")
    page.line(_cache(sweep, data))
    left_out = [each for each in sweep.untried if each.url == data.url]
    if left_out:
        page.line(_left_out(data, left_out))


def _left_out(data: DataSet, left_out: list[Untried]) -> str:
    best = max(left_out, key=lambda each: each.samples_per_s)
    prefetch = f", prefetch {best.prefetch_factor}" if best.prefetch_factor else ""
    every = len(left_out) + len(data.trials)
    said = (
        f"{counted(len(left_out), 'setting')} of {every} not tried: none is predicted to change "
        f"the answer. At best, with {best.num_workers} "
        f"worker{'s' if best.num_workers != 1 else ''}{prefetch}: "
        f"{format_count(best.samples_per_s)} samples/s, {format_count(best.at_most)} at most in "
        "one run."
    )
    told = [
        f"{trial.predicted_samples_per_s / trial.samples_per_s - 1:+.1%}".replace("%", " %")
        for trial in data.trials
        if trial.predicted_samples_per_s and trial.samples_per_s > 0
    ]
    return said + (f" Predictions were off by {', '.join(told)}." if told else "")


def _cache(sweep: SweepResult, data: DataSet) -> str:
    """What the cache was to be, what it was, and the evidence of the best trial."""
    had = Counter(trial.cache.state for trial in data.trials)
    counts = ", ".join(f"{counted(count, 'trial')} {state}" for state, count in had.items())
    best = data.best.cache
    return f"Cache, {sweep.spec.cache} asked for: {counts}. Of *, {best.state}: {best.evidence}."


def _half_width(trial: Trial) -> str:
    low, high = trial.interval
    if trial.samples_per_s <= 0:
        return ""
    return format_share((high - low) / 2 / trial.samples_per_s)


def _trial_cells(trial: Trial, best: bool) -> tuple[str, ...]:
    config = trial.config
    return (
        "*" if best else "",
        str(config.num_workers),
        str(config.prefetch_factor) if config.prefetch_factor and config.num_workers else "",
        f"{config.batch_size:,}" if config.batch_size else "",
        format_count(trial.samples_per_s),
        _half_width(trial),
        format_share(trial.spread),
        format_share(trial.starved_fraction),
        trial.verdict if trial.has_step else "no step",
        trial.bottleneck or "",
    )


def how_sure(page: Page, sweep: SweepResult) -> None:
    spec = sweep.spec
    page.heading("How sure")
    rows = [
        ("trials", f"{len(sweep.trials)}, each {_length(spec)}"),
        *(
            row
            for data in data_sets(sweep)
            if data.url in sweep.noise
            for row in run_to_run(sweep, data.label, sweep.noise[data.url])
        ),
        ("spread", "(max - min) / median of samples/s over five equal windows of a trial"),
        ("verdict", rule(spec.threshold)),
        ("accelerator", sweep.environment.accelerator or "unknown"),
    ]
    if spec.transform:
        rows.append(("transform", spec.transform))
    if spec.columns:
        rows.append(("columns", ", ".join(spec.columns)))
    rows += [("machine", machine(sweep.environment)), ("run", sweep.created)]
    page.pairs(rows + [("note", note) for note in sweep.notes])


def _length(spec: SweepSpec) -> str:
    return f"of {format_duration(spec.trial_s)} or more" if spec.script is None else "a run of it"


def _emulated(sweep: SweepResult) -> bool:
    return is_emulated(sweep.environment.accelerator)


def _label(sweep: SweepResult) -> str:
    return "with an emulated accelerator" if _emulated(sweep) else ""
