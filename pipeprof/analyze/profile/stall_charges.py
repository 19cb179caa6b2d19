"""Sum up what the stall of a run is charged to."""

from __future__ import annotations

from collections import defaultdict

from pipeprof.analyze.profile.batch_table import Columns, Mask
from pipeprof.analyze.profile.pipeline_stages import BusyStage
from pipeprof.analyze.profile.stall_attribution import (
    OTHER_LOADERS,
    PIPELINE,
    UNKNOWN,
    causes,
    places,
    ranked,
)
from pipeprof.analyze.thresholds import MINOR_SHARE

_MOST_EXTRAPOLATION = 2.0
"""Multiple of the sampled batches' mean stall. Beyond it the cause of other stalls is unknown."""


class StallCharges:
    """Seconds of stall by cause, and by the stage in which the awaited batch was."""

    def __init__(self) -> None:
        self.blame: defaultdict[str, float] = defaultdict(float)
        """Seconds of stall by cause."""
        self.blocked_hand_over_s: defaultdict[str, float] = defaultdict(float)
        """The part of ``blame`` in which a finished batch waited for its worker's interpreter or
        for a core."""
        self.awaited_in: defaultdict[str, float] = defaultdict(float)
        """Seconds of stall by the stage in which the awaited batch was."""
        self.limited: str | None = None
        """The stage that waits for something whose rate is limited, see `limited_rate`."""
        self.busiest: BusyStage | None = None
        """The stage that limits a loader which works in threads, if one does."""

    def add(self, columns: Columns, mask: Mask, main_core_wait: float | None) -> None:
        """Charge the stall of the batches in ``mask`` to its causes. What their workers did
        meanwhile follows from all of ``columns``."""
        charged, blocked = causes(columns, main_core_wait)
        for sums, charges in (
            (self.blame, charged), (self.blocked_hand_over_s, blocked),
            (self.awaited_in, places(columns)),
        ):  # fmt: skip
            for cause, seconds in charges.items():
                sums[cause] += float(seconds[mask].sum())
        if others_s := float(columns.take(mask).others_stall_s.sum()):
            self.blame[OTHER_LOADERS] += others_s
            self.awaited_in[OTHER_LOADERS] += others_s

    def extrapolate(self, watched_s: float, stall_s: float, batches: float) -> float:
        """Scale the charges of sampled batches to all batches.

        Args:
            watched_s: The stall of sampled batches, which was charged.
            stall_s: The stall of all batches.
            batches: How many batches there are for each sampled one.

        Returns:
            By what the charges were multiplied. The rest of ``stall_s`` has no known cause.
        """
        scale = min(stall_s / watched_s, _MOST_EXTRAPOLATION * batches) if watched_s > 0 else 0.0
        for charges in (self.blame, self.blocked_hand_over_s, self.awaited_in):
            for cause in charges:
                charges[cause] *= scale
        for charges in (self.blame, self.awaited_in):
            charges[UNKNOWN] += stall_s - scale * watched_s
        return scale

    def is_awaited(self, stage: str) -> bool:
        """Whether more than a minor part of the stall is charged to ``stage``. The rate of a
        storage may be limited and yet leave workers ahead of main."""
        return self.blame[stage] > MINOR_SHARE * sum(self.blame.values())

    def charge_all_to(self, stage: str) -> None:
        """Charge the whole stall of a known cause to ``stage``, whose rate is limited. Saving time
        anywhere else would only let it wait longer."""
        self.limited = stage
        kept = {name: self.blame.pop(name, 0.0) for name in (UNKNOWN, OTHER_LOADERS)}
        total = sum(self.blame.values())
        self.blame.clear()
        self.blame.update({stage: total, **kept})
        self.blocked_hand_over_s.clear()

    def charge_pipeline(self, bound: BusyStage) -> None:
        """Charge the whole stall to the loader's own pipeline, of which ``bound`` is the limit."""
        self.busiest = bound
        others_s = self.blame[OTHER_LOADERS]
        total = sum(self.blame.values()) - others_s
        for charges in (self.blame, self.awaited_in):
            charges.clear()
            charges.update({PIPELINE: total, OTHER_LOADERS: others_s})

    def ranked_blame(self) -> dict[str, float]:
        """Return the seconds of stall by cause, largest first."""
        return ranked(self.blame)
