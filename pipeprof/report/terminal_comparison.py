"""Runs against each other: what became of the throughput, what was changed, where time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeprof.model import Change, Compared, Comparison, Difference, TwoRuns
from pipeprof.report.journey import in_order
from pipeprof.report.layout import WORST_STYLE, Column, Page, Word
from pipeprof.report.phrases import count_range, is_emulated, shorten
from pipeprof.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_share,
    percent,
)

WORDS: Final[dict[str, Word]] = {
    "faster": "faster",
    "slower": "slower",
    "none": "no difference",
    "unknown": "too little to tell",
}
"""`Speed.shown` → what a report opens with."""
SHOWN: Final = {"more": "longer", "less": "shorter", "none": "", "unknown": "?"}
SLACK: Final = ("ready", "reorder")
"""Longer is not worse."""
_FILE: Final = 44
"""Most columns for the name of a file in a table."""
_RULE: Final = (
    "no difference that this data can show where the interval holds 1, or where it is less than 3 %"
)
_OF: Final = {"loader": "loader", "data": "data", "machine": "machine", "verdict": "rule"}


def comparison_page(page: Page, comparison: Comparison) -> None:
    several = len(comparison.pairs) > 1
    ranks(page, comparison)
    if several:
        _overview(page, comparison)
    for pair in comparison.pairs:
        if several:
            page.heading(shorten(pair.after.file, 2 * _FILE))
        opening(page, pair)
        changed(page, pair)
        stages(page, pair)
    how_sure(page, comparison)


def ranks(page: Page, comparison: Comparison) -> None:
    skew = comparison.ranks
    if skew is not None:
        page.heading("Ranks of one training", skew.grade)
        page.line(skew.headline)
        page.gap()


OVERVIEW: Final = ("samples/s", "speed", "95 %", "starved", "verdict", "to blame")
_SPARE: Final = {"verdict": 1, "95 %": 2}


def _overview(page: Page, comparison: Comparison) -> None:
    page.heading("Runs, each against the first of its data" if _bases(comparison) > 1
                 else "Runs, each against the first")  # fmt: skip
    columns = [Column("run", right=False, wraps=True)]
    columns += [Column(title, spare=_SPARE.get(title, 0)) for title in OVERVIEW[:4]]
    columns += [Column(title, right=False, spare=_SPARE.get(title, 0)) for title in OVERVIEW[4:]]
    page.table(columns, overview(comparison))


def _bases(comparison: Comparison) -> int:
    return len({pair.before.file for pair in comparison.pairs})


def overview(comparison: Comparison) -> list[tuple[str, ...]]:
    """Of each run its file, and what `OVERVIEW` names."""
    rows: list[tuple[str, ...]] = []
    told: set[str] = set()
    for pair in comparison.pairs:
        if pair.before.file not in told:
            rows.append(_run_cells(pair.before, "1.00×", ""))
            told.add(pair.before.file)
        speed, interval = pair.speed.ratio, pair.speed.interval
        rows.append(
            _run_cells(
                pair.after,
                f"{speed:.2f}×" if speed is not None else "?",
                f"{interval[0]:.2f}–{interval[1]:.2f}" if interval else "?",
            )
        )
    return rows


def _run_cells(run: Compared, speed: str, interval: str) -> tuple[str, ...]:
    return (
        shorten(run.file, _FILE),
        format_count(run.samples_per_s),
        speed,
        interval,
        format_share(run.starved_fraction),
        run.verdict,
        blamed(run),
    )


def blamed(run: Compared) -> str:
    return "nothing" if run.verdict == "fed" else run.bottleneck or "unknown"


def opening(page: Page, pair: TwoRuns) -> None:
    page.verdict(WORDS[pair.speed.shown], pair.headline)
    page.gap()
    page.pairs(summary(pair))
    if pair.unlike:
        page.line(f"Not a comparison of like with like: {'; '.join(pair.unlike)}.")


def summary(pair: TwoRuns) -> list[tuple[str, str]]:
    before, after = pair.before, pair.after
    rates = f"{_rate(before)} → {_rate(after)} samples/s"
    return [
        ("before", f"{before.file}: {before.name}, {before.created}"),
        ("after", f"{after.file}: {after.name}, {after.created}"),
        ("throughput", rates),
        ("starved", f"{_starved(pair)}{_emulated(pair)}"),
        ("stall", _stall(pair)),
        ("verdict", f"{before.verdict} → {after.verdict}"),
        ("to blame", f"{blamed(before)} → {blamed(after)}"),
    ]


def _rate(run: Compared) -> str:
    return f"{format_count(run.samples_per_s)} ({count_range(run.samples_interval)})"


def _emulated(pair: TwoRuns) -> str:
    which = [is_emulated(run.accelerator) for run in (pair.before, pair.after)]
    if not any(which):
        return ""
    return " (emulated accelerator)" if all(which) else " (one accelerator emulated)"


def _starved(pair: TwoRuns) -> str:
    starved = pair.starved
    told = f"{_share(starved.before)} → {_share(starved.after)} of the time"
    if starved.change is None:
        return told
    span = starved.interval
    range_ = f" (95 %: {_points(span[0])} to {_points(span[1])})" if span else ""
    return f"{told}: {_points(starved.change)} points{range_}{_none(starved)}"


def _stall(pair: TwoRuns) -> str:
    stall = pair.stall
    told = f"{_duration(stall.before)} → {_duration(stall.after)} a {pair.per}"
    if stall.change is None:
        return told
    range_ = f" (95 %: {span_of(stall)})" if stall.interval else ""
    return f"{told}: {signed(stall.change)}{range_}{_none(stall)}"


def _none(difference: Difference) -> str:
    return ", no difference shown" if difference.shown == "none" else ""


def _share(share: float | None) -> str:
    return format_share(share) if share is not None else "?"


def _duration(seconds: float | None) -> str:
    return format_duration(seconds) if seconds is not None else "?"


def _points(share: float) -> str:
    return f"{share * 100:+.1f}"


def signed(seconds: float) -> str:
    """``"+7.50 ms"``."""
    return f"{'+' if seconds >= 0 else ''}{format_duration(seconds)}"


def span_of(difference: Difference) -> str:
    """Of its interval, ``"+6.10 ms to +8.90 ms"``; ``?`` where there is none."""
    span = difference.interval
    return f"{signed(span[0])} to {signed(span[1])}" if span else "?"


def changed(page: Page, pair: TwoRuns) -> None:
    page.heading("What was changed")
    if not pair.changes:
        page.line("Nothing that profiles tell of: the same settings, data and machine.")
        return
    columns = [Column(right=False), Column(right=False)]
    columns += [Column("before", right=False, wraps=True), Column("after", right=False, wraps=True)]
    page.table(columns, [_change_cells(change) for change in pair.changes])


def _change_cells(change: Change) -> tuple[str, ...]:
    return (_OF[change.of], change.name, value(change, change.before), value(change, change.after))


def value(change: Change, told: str | float | None) -> str:
    """A setting as people read it."""
    if told is None:
        return "none"
    if isinstance(told, bool):
        return "on" if told else "off"
    if isinstance(told, str):
        return told
    if change.name.endswith("bytes"):
        return format_bytes(told)
    if change.name == "threshold":
        return format_share(told)
    return f"{told:,}"


STAGES: Final = ("before", "after", "change", "95 %", "")


def stages(page: Page, pair: TwoRuns) -> None:
    if not pair.stages:
        return
    page.heading("Where the time goes", f"mean per {pair.per}")
    columns = [Column("stage", right=False), *(Column(title) for title in STAGES[:3])]
    columns += [Column(STAGES[3], spare=2), Column(spare=1), Column(right=False)]
    rows = in_order(pair.stages)
    page.table(
        columns,
        [stage_cells(name, nested, pair.stages[name]) for name, nested in rows],
        [WORST_STYLE if is_worse(name, pair.stages[name]) else "" for name, _ in rows],
    )
    page.line(legend(pair))


def is_worse(name: str, stage: Difference) -> bool:
    return stage.shown == "more" and name not in SLACK


def stage_cells(name: str, nested: bool, stage: Difference) -> tuple[str, ...]:
    return (
        f"{'  ' * nested}{name}",
        _duration(stage.before),
        _duration(stage.after),
        signed(stage.change) if stage.change is not None else "",
        span_of(stage) if stage.change is not None else "",
        f"{stage.change / stage.before:+.0%}".replace("%", " %")
        if stage.change is not None and stage.before
        else "",
        SHOWN[stage.shown],
    )


def legend(pair: TwoRuns) -> str:
    """What the last column says."""
    told = ["Longer, shorter: as these data show, of all stages together with 95 %",
            "no word: no difference that they can show"]  # fmt: skip
    if any(stage.shown == "unknown" for stage in pair.stages.values()):
        told.append("?: not seen in one of the two, or in too few of the batches kept")
    return "; ".join(told) + "."


def how_sure(page: Page, comparison: Comparison) -> None:
    page.heading("How sure")
    several = len(comparison.pairs) > 1
    rows = [
        (shorten(pair.after.file, _FILE) if several else "intervals", method(pair))
        for pair in comparison.pairs
    ]
    rows.append(("throughput", _RULE))
    rows += [("accelerator", run.accelerator or "unknown") for run in _runs(comparison.pairs)]
    page.pairs(rows + [("note", note) for note in comparison.notes])


def _runs(pairs: Sequence[TwoRuns]) -> list[Compared]:
    """One for each accelerator."""
    runs = [run for pair in pairs for run in (pair.before, pair.after)]
    return list({run.accelerator: run for run in runs}.values())


def method(pair: TwoRuns) -> str:
    before, after = pair.before, pair.after
    return (
        f"95 %, by block bootstrap over {before.measured_batches:,} and "
        f"{counted(after.measured_batches, 'batch')}, of stages over the {before.kept_batches:,} "
        f"and {after.kept_batches:,} that the profiles keep; widened by the "
        f"{percent(pair.between_runs)} that two runs of one setting may differ by"
    )
