"""Compare the ranks of one training: is one slower than the others to fetch its batches?

Each step waits for all ranks, so their throughput is equal. The sooner a rank has its batch, the
longer its step lasts; only the time to fetch a batch is its own. A rank that is slow in the step
itself cannot be distinguished from those that wait for it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from pipeprof.analyze.compare.run_intervals import Estimate, RunIntervals
from pipeprof.analyze.wording.comparison import comparison
from pipeprof.model import Profile, RankSkew, Stage

WARNING: Final = 0.10
CRITICAL: Final = 0.20
"""Fraction by which a rank's fetch time exceeds the median of the others."""


def rank_skew(profiles: Sequence[Profile]) -> RankSkew | None:
    """Return the slowest rank, if one is slow; ``None`` where the ranks cannot be compared. They
    must be ranks of one training, with known fetch times."""
    if not _of_one_training(profiles):
        return None
    figures = [RunIntervals(profile, 1.0).stage(str(Stage.FETCH)) for profile in profiles]
    fetches = [figure.value for figure in figures if figure.value]
    if len(fetches) < len(profiles):
        return None
    place = max(range(len(fetches)), key=fetches.__getitem__)
    own_s, others_s = fetches[place], median(fetches[:place] + fetches[place + 1 :])
    longer, rank = own_s / others_s - 1, profiles[place].environment.rank
    shown = longer >= WARNING and _apart(figures, place)
    return RankSkew(
        ranks=len(profiles),
        grade="even" if not shown else "critical" if longer >= CRITICAL else "warning",
        headline=_slow(profiles, place, own_s, others_s) if shown else _even(fetches, others_s),
        rank=rank if shown else None,
        fetch_s=own_s if shown else None,
        others_s=others_s if shown else None,
    )


def _of_one_training(profiles: Sequence[Profile]) -> bool:
    """Return whether these are different ranks with the same loader, training at the same time."""
    ranks = {profile.environment.rank for profile in profiles} - {None}
    names = {profile.name for profile in profiles}
    times = [time for time in map(_time_span, profiles) if time is not None]
    if len(profiles) < 2 or not len(ranks) == len(times) == len(profiles) or len(names) > 1:
        return False
    return max(began_s for began_s, _ in times) < min(ended_s for _, ended_s in times)


def _time_span(profile: Profile) -> tuple[float, float] | None:
    """Return the start and end of training on the kept batches, in seconds since 1970."""
    log, offset_s = profile.batches, profile.unix_offset_s
    if offset_s is None or not (log.asked_s and log.done_s):
        return None
    return log.asked_s[0] + offset_s, log.done_s[-1] + offset_s


def _apart(figures: Sequence[Estimate], place: int) -> bool:
    """Return whether the whole interval of one rank is above those of most others."""
    own = figures[place].interval
    others = [each.interval for nth, each in enumerate(figures) if nth != place]
    highs = [interval[1] for interval in others if interval is not None]
    return own is not None and len(highs) == len(others) and own[0] > median(highs)


def _slow(profiles: Sequence[Profile], place: int, own_s: float, others_s: float) -> str:
    waits = [profile.diagnosis.starved_fraction for profile in profiles]
    own_waits = waits.pop(place)
    rates = [profile.throughput.batches_per_s for profile in profiles]
    figures = {
        "ranks": len(profiles),
        "rank": profiles[place].environment.rank,
        "own_s": own_s,
        "others_s": others_s,
        "longer": own_s / others_s - 1,
        "own_waits": own_waits,
        "others_wait": median(waits),
        "together": max(rates) < (1 + WARNING) * min(rates),
    }
    return comparison("slow-rank", figures)


def _even(fetches: Sequence[float], others_s: float) -> str:
    longer = max(fetches) / others_s - 1
    figures = {
        "ranks": len(fetches),
        "longer": longer,
        "chance": longer >= WARNING,
        "least": WARNING,
    }
    return comparison("even-ranks", figures)
