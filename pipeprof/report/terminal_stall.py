"""What the accelerator waited for, and the pauses in which it was not meant to work."""

from __future__ import annotations

from pipeprof.model import Profile
from pipeprof.report.layout import WORST_STYLE, Column, Page, bar
from pipeprof.report.phrases import (
    is_emulated,
    pause_name,
    share_range,
    stall_notes,
    worth_cells,
)
from pipeprof.units import counted, format_duration, format_share


def stall(page: Page, profile: Profile) -> None:
    if profile.stall_s <= 0 or not profile.blame:
        return
    of_all = f"{format_duration(profile.stall_s)} of {format_duration(profile.wall_s)}"
    emulated = " (emulated)" if is_emulated(profile.environment.accelerator) else ""
    who = "accelerator" if profile.diagnosis.has_step else "loop"
    page.heading(f"What the {who} waited for", f"{of_all}{emulated}")
    charged = sorted(profile.blame.items(), key=lambda item: -item[1])
    shares = [seconds / profile.stall_s for _, seconds in charged]
    columns = [Column("cause", right=False), Column("stall"), Column("share")]
    columns += [Column(right=False, spare=1)]
    columns += [Column("25 % cheaper"), Column("free")] if profile.worth else []
    page.table(
        columns,
        [
            (name, format_duration(seconds), format_share(share), bar(share, 24).ljust(24),
             *worth_cells(profile, name))
            for (name, seconds), share in zip(charged, shares, strict=True)
        ],
        [WORST_STYLE if profile.diagnosis.verdict == "starved" else ""],
    )  # fmt: skip
    for line in stall_notes(profile):
        page.line(line)


def pauses(page: Page, profile: Profile) -> None:
    found = profile.pauses
    if found is None:
        return
    page.heading("Pauses", "between two batches, but no training step")
    columns = [Column(right=False), Column("pauses"), Column("total"), Column("mean")]
    page.table(
        [*columns, Column("longest")],
        [
            (
                pause_name(each.kind),
                f"{each.count:,}",
                format_duration(each.total_s),
                format_duration(each.total_s / max(each.count, 1)),
                format_duration(each.longest_s),
            )
            for each in found.kinds
        ],
    )
    rested = found.rested_batches
    beside = f", beside {counted(rested, 'batch')} that lay ready after one" if rested else ""
    verdict = found.as_steps
    page.line(
        f"Left out of all other figures{beside}. Counted as training steps: {verdict.verdict}, "
        f"{format_share(verdict.starved_fraction)} of the time, "
        f"95 %: {share_range(verdict.starved_interval)}."
    )
    if any(each.kind.evidence == "length" for each in found.kinds):
        page.line('With pipeprof.pause("…") around it a pause has a name and an exact length.')
