"""Present the stages of a loader that works in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pipeprof.model import PipelineStage, Profile
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.wording import settings
from pipeprof.units import counted, format_duration, format_share

_BY_LIBRARY: Final = "* by the library's own statistics; the others were timed by pipeprof"
_WAITS: Final = (
    "waited for: time that the training loop was blocked on the stage, after its first batch"
)
_HINT: Final = (
    "busy: share of the time in which the stage's threads worked on items, or waited for storage "
    "or the interpreter; cpu: the part of it in which they computed"
)


def pipeline(profile: Profile) -> doc.Section:
    """Return a row for each stage, from the sources to the batch; nothing for DataLoaders."""
    name, title, stages = "pipeline", "Pipeline stages", profile.pipeline
    if not stages:
        return doc.section(name, title)
    by_library = any(stage.measured_by == "library" for stage in stages)
    note = f"{stages[0].library}; from the sources to the batch"
    hint = _HINT if any(stage.busy_share is not None for stage in stages) else None
    legend = _BY_LIBRARY if by_library else None
    waits = _WAITS if any(stage.waited_s is not None for stage in stages) else None
    return doc.section(name, title, _table(stages), hint, waits, legend, note=note)


def loader_in_words(profile: Profile) -> str:
    """Return the settings of a DataLoader, or the library and the stages of another loader."""
    if not profile.pipeline:
        outside = profile.config.kind == "other" and not profile.config.num_workers
        return "not a DataLoader" if outside else settings(profile.config)
    count = counted(len(profile.pipeline), "pipeline stage")
    return f"{profile.pipeline[0].library}, {count}"


def _table(stages: tuple[PipelineStage, ...]) -> doc.Table:
    """Return the table without the columns of which nothing is known."""
    figures = [(column, [read(stage) for stage in stages]) for column, read in _COLUMNS]
    known = [(column, cells) for column, cells in figures if any(cells)]
    names = (doc.Column("stage", "name"), doc.Column("kind", "name", spare=2))
    rows = (
        doc.row(_name(stage), stage.kind, *(cells[place] or "unknown" for _, cells in known))
        for place, stage in enumerate(stages)
    )
    return doc.Table((*names, *(column for column, _ in known)), tuple(rows))


def _name(stage: PipelineStage) -> str:
    return f"{stage.name} *" if stage.measured_by == "library" else stage.name


def _format(value: float | None, write: Callable[[float], str]) -> doc.Cell | None:
    return None if value is None else doc.Cell(write(value))


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _busy(stage: PipelineStage) -> doc.Cell | None:
    share = stage.busy_share
    return None if share is None else doc.Cell(format_share(share), share=min(1.0, share))


def _share_at_most_one(share: float) -> str:
    return format_share(min(1.0, share))


def _unshared(stage: PipelineStage) -> float | None:
    """Return the time in a stage of which no share is known."""
    return stage.busy_s if stage.busy_share is None else None


_COLUMNS: Final[tuple[tuple[doc.Column, Callable[[PipelineStage], doc.Cell | None]], ...]] = (
    (doc.Column("threads"), lambda stage: _format(stage.concurrency, str)),
    (doc.Column("items", spare=3), lambda stage: _format(stage.items, lambda n: f"{n:,}")),
    (
        doc.Column("an item"),
        lambda stage: _format(_ratio(stage.busy_s, stage.items), format_duration),
    ),
    (
        doc.Column("cpu", spare=1),
        lambda stage: _format(_ratio(stage.cpu_s, stage.busy_s), _share_at_most_one),
    ),
    (doc.Column("worked"), lambda stage: _format(_unshared(stage), format_duration)),
    (doc.Column("waited for"), lambda stage: _format(stage.waited_s, format_duration)),
    (doc.Column("item ready", spare=4), lambda stage: _format(stage.ready_share, format_share)),
    (doc.Column("busy"), _busy),
)
