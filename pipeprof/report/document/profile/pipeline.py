"""Present the stages of a loader that works in threads."""

from __future__ import annotations

from typing import Final

from pipeprof.model import PipelineStage, Profile
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.wording import or_unknown, settings
from pipeprof.units import counted, format_duration, format_share

_BY_LIBRARY: Final = "* by the library's own statistics; the others were timed by pipeprof"
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
    hint = _HINT if any(stage.busy_s is not None for stage in stages) else None
    legend = _BY_LIBRARY if by_library else None
    return doc.section(name, title, _table(stages), hint, legend, note=note)


def loader_in_words(profile: Profile) -> str:
    """Return the settings of a DataLoader, or the library and the stages of another loader."""
    if not profile.pipeline:
        return settings(profile.config)
    count = counted(len(profile.pipeline), "pipeline stage")
    return f"{profile.pipeline[0].library}, {count}"


def _table(stages: tuple[PipelineStage, ...]) -> doc.Table:
    waited = any(stage.waited_s is not None for stage in stages)
    ready = any(stage.ready_share is not None for stage in stages)
    columns = [
        doc.Column("stage", "name"), doc.Column("kind", "name", spare=2),
        doc.Column("threads"), doc.Column("items", spare=3), doc.Column("an item"),
        doc.Column("cpu", spare=1), *([doc.Column("waited for")] if waited else []),
        *([doc.Column("item ready", spare=4)] if ready else []), doc.Column("busy"),
    ]  # fmt: skip
    return doc.Table(tuple(columns), tuple(_row(stage, waited, ready) for stage in stages))


def _row(stage: PipelineStage, waited: bool, ready: bool) -> doc.Row:
    star = " *" if stage.measured_by == "library" else ""
    each_s = stage.busy_s / stage.items if stage.items and stage.busy_s is not None else None
    cpu = stage.cpu_s / stage.busy_s if stage.cpu_s is not None and stage.busy_s else None
    share = stage.busy_share
    return doc.row(
        doc.Cell(f"{stage.name}{star}"),
        stage.kind,
        or_unknown(stage.concurrency, str),
        or_unknown(stage.items, lambda count: f"{count:,}"),
        or_unknown(each_s, format_duration),
        or_unknown(cpu, lambda part: format_share(min(1.0, part))),
        *([or_unknown(stage.waited_s, format_duration)] if waited else []),
        *([or_unknown(stage.ready_share, format_share)] if ready else []),
        doc.Cell(or_unknown(share, format_share), share=None if share is None else min(1.0, share)),
    )
