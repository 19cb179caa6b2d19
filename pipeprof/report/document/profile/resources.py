"""What fetching a batch took of the machine."""

from __future__ import annotations

from typing import Final

from pipeprof.model import Profile
from pipeprof.report.document.blocks import Cell, Column, Section, Table, row
from pipeprof.units import counted, format_duration, format_share

_MEANING: Final = {
    "cpu": "on a core",
    "system": "of it in the kernel",
    "run-queue": "wanted a core, had none",
    "blocked": "waited for storage, network or a lock",
    "native-threads": "CPU of other threads, at the same time",
}


def resources(profile: Profile) -> Section:
    """Nothing where no batch was sampled."""
    name, title = "resources", "What a batch took of the machine"
    sampled = profile.resources.get("blocked")
    if sampled is None:
        return Section(name, title, ())
    known = {each: profile.resources[each].mean_s for each in _MEANING if each in profile.resources}
    whole_s = sum(known.get(each, 0.0) for each in ("cpu", "run-queue", "blocked"))
    table = Table(
        (Column("", "name"), Column("", "text", spare=1), Column("mean"), Column("share")),
        tuple(
            row(
                each,
                _MEANING[each],
                format_duration(seconds),
                Cell(format_share(seconds / whole_s), share=seconds / whole_s)
                if whole_s > 0
                else "",
                nested=each == "system",
            )
            for each, seconds in known.items()
        ),
    )
    return Section(name, title, (table,), f"mean of {counted(sampled.count, 'sampled batch')}",
                   evidence=True)  # fmt: skip
