"""How a self-check is shown: a line a part while it runs, on stderr; then the figures."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from pipeprof.report.layout import WORST_STYLE, Column, Page, to_ascii
from pipeprof.report.phrases import machine, settings
from pipeprof.selfcheck.results import (
    CheckedFigure,
    Claim,
    CostComparison,
    PipelineResult,
    ProfilerCost,
    SelfCheck,
)
from pipeprof.units import counted, format_duration

WIDTH = 100


class SilentSelfCheckWatcher:
    """For ``--json``: says nothing."""

    def finished(self, result: PipelineResult | ProfilerCost) -> None:
        pass


class SelfCheckLines(SilentSelfCheckWatcher):
    def finished(self, result: PipelineResult | ProfilerCost) -> None:
        if isinstance(result, ProfilerCost):
            name, word, why = "overhead", _worst(result), ""
        else:
            name, word, why = result.name, result.outcome, result.why
        click.echo(f"  {name:<12}{word}{': ' if why else ''}{why}", err=True)


def selfcheck_text(check: SelfCheck) -> str:
    """The whole report, as far as standard output can show it."""
    page = Page(WIDTH, color=False)
    page.line(_headline(check), indent=0)
    for result in check.pipelines:
        _pipeline(page, result)
    if check.cost is not None:
        _cost(page, check.cost)
    page.heading("How it was checked")
    page.pairs(
        [
            ("truth", "each pipeline's own code reads the clock around all that it does"),
            ("bar", "3 % of a batch's wall time or 0.2 ms, whichever is larger"),
            ("machine", machine(check.environment)),
            ("run", f"{check.created}{', quick' if check.quick else ''}"),
        ]
    )
    text = page.text()
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = to_ascii(text)
    return text


def _headline(check: SelfCheck) -> str:
    ran = [result for result in check.pipelines if result.outcome in ("right", "off", "failed")]
    good = [result for result in ran if result.outcome == "right"]
    words = [f"{len(good)} of {counted(len(ran), 'pipeline')} right"] if ran else []
    for outcome in ("off", "failed", "unsettled", "skipped"):
        names = [result.name for result in check.pipelines if result.outcome == outcome]
        if names:
            words.append(f"{outcome}: {', '.join(names)}")
    if check.cost is not None:
        words.append(f"overhead {_worst(check.cost)}")
    return f"{'PASSED' if check.passed else 'FAILED'}: {'; '.join(words)}."


def _pipeline(page: Page, result: PipelineResult) -> None:
    page.heading(f"{result.name}: {result.outcome}", result.says)
    if result.why:
        page.line(result.why)
    if result.config is None:
        return
    page.line(
        f"{settings(result.config)}; {counted(result.batches, 'batch')} of "
        f"{format_duration(result.batch_s)}"
    )
    page.table(
        [
            Column("stage", right=False),
            *(Column(title) for title in ("truth", "pipeprof", "apart", "bar")),
            Column(right=False),
        ],
        [_cells(figure) for figure in result.figures],
        [WORST_STYLE if figure.status == "off" else "" for figure in result.figures],
    )
    page.line("; ".join(_words(claim) for claim in result.claims))


def _cells(figure: CheckedFigure) -> Sequence[str]:
    status = "" if figure.status == "right" else figure.status.upper()
    truth = format_duration(figure.truth_s)
    if figure.measured_s is None:
        return (figure.name, truth, "?", "", format_duration(figure.bar_s), status)
    apart_s = figure.measured_s - figure.truth_s
    return (
        figure.name,
        truth,
        format_duration(figure.measured_s),
        format_duration(apart_s),
        format_duration(figure.bar_s),
        status,
    )


def _words(claim: Claim) -> str:
    if not claim.holds:
        return f"{claim.name} {claim.found}: OFF, it is {claim.expected}"
    truth = f" (truth {claim.expected})" if claim.found != claim.expected else ""
    return f"{claim.name} {claim.found}{truth}"


def _cost(page: Page, cost: ProfilerCost) -> None:
    page.heading(
        "overhead",
        f"a plain, a plain and a profiled run in random order, {counted(cost.rounds, 'round')} of "
        f"{counted(cost.batches, 'batch')}; {format_duration(cost.batch_s)} a plain batch",
    )
    page.table(
        [
            Column("per batch", right=False),
            Column("profiled"),
            Column("95 %", right=False),
            Column("control"),
            Column("95 %", right=False),
            Column(right=False),
        ],
        [_cost_cells("wall time", cost.wall), _cost_cells("CPU time", cost.cpu)],
    )
    if "inconclusive" in (cost.wall.status, cost.cpu.status):
        page.line(
            "inconclusive: plain against plain differs too much on this machine now to tell; "
            "let it be idle and try again"
        )


def _cost_cells(name: str, one: CostComparison) -> Sequence[str]:
    return (
        name,
        _signed(one.cost),
        f"{_signed(one.interval[0])} to {_signed(one.interval[1])}",
        _signed(one.control),
        f"{_signed(one.control_interval[0])} to {_signed(one.control_interval[1])}",
        one.status,
    )


def _worst(cost: ProfilerCost) -> str:
    """Of wall and CPU time."""
    found = {cost.wall.status, cost.cpu.status}
    return next(status for status in ("beyond", "inconclusive", "within") if status in found)


def _signed(share: float) -> str:
    return f"{share * 100:+.2f} %"
