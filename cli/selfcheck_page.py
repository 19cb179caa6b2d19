"""Show a self-check: one line per part on stderr while it runs, then the figures."""

from __future__ import annotations

import click

from pipeprof.report.document.blocks import (
    Block,
    Column,
    Document,
    Paragraph,
    Row,
    Section,
    Table,
    columns,
    figures,
    row,
)
from pipeprof.report.document.wording import machine, settings
from pipeprof.selfcheck.results import (
    CheckedFigure,
    Claim,
    CostComparison,
    PipelineResult,
    ProfilerCost,
    SelfCheck,
)
from pipeprof.units import counted, format_duration


def print_outcome(result: PipelineResult | ProfilerCost) -> None:
    """Print a line to stderr for a finished part of the check."""
    if isinstance(result, ProfilerCost):
        name, word, why = "overhead", _worse_status(result), ""
    else:
        name, word, why = result.name, result.outcome, result.why
    click.echo(f"  {name:<12}{word}{': ' if why else ''}{why}", err=True)


def selfcheck_document(check: SelfCheck) -> Document:
    method = figures(
        [
            ("truth", "each pipeline's own code reads the clock around all of its work"),
            ("bar", "3 % of a batch's wall time or 0.2 ms, whichever is larger"),
            ("machine", machine(check.environment)),
            ("run", f"{check.created}{', quick' if check.quick else ''}"),
        ]
    )
    return Document(
        title="pipeprof selfcheck",
        subject="selfcheck",
        created=check.created,
        version=check.environment.pipeprof,
        sections=(
            Section("outcome", "", (Paragraph(_headline(check)),)),
            *(_pipeline(result) for result in check.pipelines),
            *([_cost(check.cost)] if check.cost is not None else []),
            Section("method", "How it was checked", (method,)),
        ),
    )


def _headline(check: SelfCheck) -> str:
    ran = [result for result in check.pipelines if result.outcome in ("right", "off", "failed")]
    good = [result for result in ran if result.outcome == "right"]
    words = [f"{len(good)} of {counted(len(ran), 'pipeline')} right"] if ran else []
    for outcome in ("off", "failed", "unsettled", "skipped"):
        names = [result.name for result in check.pipelines if result.outcome == outcome]
        if names:
            words.append(f"{outcome}: {', '.join(names)}")
    if check.cost is not None:
        words.append(f"overhead {_worse_status(check.cost)}")
    return f"{'PASSED' if check.passed else 'FAILED'}: {'; '.join(words)}."


def _pipeline(result: PipelineResult) -> Section:
    blocks: list[Block] = [Paragraph(result.why)] if result.why else []
    if result.config is not None:
        batches = f"{counted(result.batches, 'batch')} of {format_duration(result.batch_s)}"
        blocks.append(Paragraph(f"{settings(result.config)}; {batches}"))
    if result.figures:
        titles = columns(("truth", "pipeprof", "apart", "bar"))
        rows = tuple(map(_row, result.figures))
        blocks.append(Table((Column("stage", "name"), *titles, Column("", "name")), rows))
    if result.claims:
        blocks.append(Paragraph("; ".join(_claim_text(claim) for claim in result.claims)))
    blocks = blocks or [Paragraph("Nothing was measured.")]
    return Section(result.name, f"{result.name}: {result.outcome}", tuple(blocks), result.says)


def _row(figure: CheckedFigure) -> Row:
    measured, apart = "unknown", ""
    if figure.measured_s is not None:
        measured = format_duration(figure.measured_s)
        apart = format_duration(figure.measured_s - figure.truth_s)
    return row(
        figure.name,
        format_duration(figure.truth_s),
        measured,
        apart,
        format_duration(figure.bar_s),
        "" if figure.status == "right" else figure.status.upper(),
        tone="bad" if figure.status == "off" else "",
    )


def _claim_text(claim: Claim) -> str:
    if not claim.holds:
        return f"{claim.name} {claim.found}: OFF, it is {claim.expected}"
    truth = f" (truth {claim.expected})" if claim.found != claim.expected else ""
    return f"{claim.name} {claim.found}{truth}"


def _cost(cost: ProfilerCost) -> Section:
    note = (
        f"a plain, a plain and a profiled run in random order, {counted(cost.rounds, 'round')} of "
        f"{counted(cost.batches, 'batch')}; {format_duration(cost.batch_s)} a plain batch"
    )
    titles = (Column("per batch", "name"), Column("profiled"), Column("95 %", "name"),
              Column("control"), Column("95 %", "name"), Column("", "name"))  # fmt: skip
    rows = (_cost_row("wall time", cost.wall), _cost_row("CPU time", cost.cpu))
    blocks: list[Block] = [Table(titles, rows)]
    if "inconclusive" in (cost.wall.status, cost.cpu.status):
        text = "inconclusive: two plain runs differ too much on this machine at present; "
        blocks.append(Paragraph(f"{text}repeat the check on an idle machine"))
    return Section("overhead", "overhead", tuple(blocks), note)


def _cost_row(name: str, one: CostComparison) -> Row:
    cells = [
        text
        for share, interval in ((one.cost, one.interval), (one.control, one.control_interval))
        for text in (_signed(share), " to ".join(map(_signed, interval)))
    ]
    return row(name, *cells, one.status)


def _worse_status(cost: ProfilerCost) -> str:
    """Return the worse status of wall and CPU time."""
    statuses = {cost.wall.status, cost.cpu.status}
    return next(status for status in ("beyond", "inconclusive", "within") if status in statuses)


def _signed(share: float) -> str:
    return f"{share * 100:+.2f} %"
