"""Documents and results that every renderer must show, and what to look for in a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pipeprof.model import Comparison, Diagnosis, Profile, SweepResult
from pipeprof.report.document.blocks import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    FigureList,
    Footnote,
    KeyFigures,
    LabelledFigure,
    Paragraph,
    Section,
    Subheading,
    Table,
    Verdict,
    row,
)
from pipeprof.report.document.build import first_screen, full_report
from tests.comparisons import sample_comparison
from tests.samples import (
    sample_pipeline,
    sample_profile,
)
from tests.sweep_samples import sample_sweep

Result = Profile | SweepResult | Comparison

SAMPLE = Document(
    title="a sample",
    subject="profile",
    sections=(
        Section(
            "verdict",
            "",
            (
                Verdict("starved", "too slow.", "bad", of="train"),
                KeyFigures((LabelledFigure("rate", "7 samples/s", "95 %: 6–8"),)),
                FigureList(
                    (LabelledFigure("loader", "2 workers"), LabelledFigure("cache", "unknown"))
                ),
            ),
        ),
        Section("empty", "A section without a word", ()),
        Section(
            "stages",
            "Where the time goes",
            (
                Subheading("of one batch"),
                Table(
                    (Column("stage", "name"), Column("mean"), Column("how", "text")),
                    (
                        row("fetch", Cell("31 ms", share=0.6), "two reads", tone="bad"),
                        row("read", "unknown", "not seen", nested=True),
                    ),
                ),
                Paragraph("Half of it is waiting."),
                Footnote("~ estimated"),
                Code("loader = DataLoader(\n    dataset,\n    num_workers=4,\n)"),
            ),
            note="per batch",
            evidence=True,
        ),
    ),
)
"""With every block that is shown as text."""
LONG_PATH = "/mnt/" + "a-rather-long-folder-name/" * 12 + "file.csv"
HOSTILE = (
    "<script>alert(1)</script>",
    "[bold]name[/bold]",
    "[/]",
    ":smile:",
    "µ-データ-🚀",
    LONG_PATH,
)
CONTROLS = "\x1b[31mred\x1b[0m\nnext\rline\x07\u202e"
RESULTS: dict[str, Result] = {
    "profile": sample_profile(), "sweep": sample_sweep(), "comparison": sample_comparison(),
    "pipeline": sample_profile(pipeline=sample_pipeline()),
}  # fmt: skip
DOCUMENTS = {
    "sample": SAMPLE,
    "first-screen": first_screen(sample_profile()),
    "first-screen-of-a-sweep": first_screen(sample_sweep()),
    **{name: full_report(result) for name, result in RESULTS.items()},
}
_CHOICES = {
    "unjudged",
    "verdict",
    "state",
    "source",
    "kind",
    "schema",
    "shown",
    "per",
    "of",
    "measured_by",
}
"""Fields whose values are a fixed few words."""


def with_diagnosis(profile: Profile, **changes: Any) -> Profile:
    diagnosis: Diagnosis = replace(profile.diagnosis, **changes)
    return replace(profile, diagnosis=diagnosis)


def renamed(value: Any, text: str, field: str = "") -> Any:
    """``value`` with every free text in it replaced by ``text``, all the way down."""
    if isinstance(value, str):
        return value if field in _CHOICES else text
    if is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: renamed(getattr(value, f.name), text, f.name) for f in fields(value)}
        return type(value)(**changes)
    if isinstance(value, tuple):
        return tuple(renamed(item, text, field) for item in value)
    if isinstance(value, Mapping):
        return {key: renamed(item, text) for key, item in value.items()}
    return value


def pieces(document: Document) -> Iterator[str]:
    """All that a reader must find, in order; charts are extra."""
    for section in document.without_charts().sections:
        yield from (section.heading, section.note)
        for block in section.blocks:
            yield from _texts(block)


def _texts(block: Block) -> Iterator[str]:
    if isinstance(block, Verdict):
        yield from (block.of, block.word, block.sentence)
    elif isinstance(block, Paragraph | Footnote | Subheading):
        yield block.text
    elif isinstance(block, FigureList):
        for figure in block.figures:
            yield from (figure.label, figure.value, figure.remark)
    elif isinstance(block, Table):
        yield from (column.title for column in block.columns)
        for each in block.rows:
            yield from (cell.text for cell in each.cells)
    elif isinstance(block, Code):
        yield from block.lines


def unwrapped(report: str) -> str:
    """``report`` without line breaks and without the spaces they bring."""
    return " ".join(report.split())
