"""Batches, or workers, that are slower than the others."""

from __future__ import annotations

from math import isnan

import numpy as np

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.roofline_estimate import absorbing_prefetch, most_prefetch
from pipeprof.analyze.profile.histogram import Sketch
from pipeprof.model import Stage
from pipeprof.units import counted, format_duration, percent

_FEW = 0.2
"""Of the batches: more of them are not the exception."""
_TO_BLAME = 0.25
"""Of the stall."""
_SLOWER = 1.2
"""Than the median worker."""
_SURE = 4.0
"""Standard errors."""
_ENOUGH = 30
"""Batches of a worker, to judge it by."""
_MOST_PREFETCH = 64


def stalled_by_slow_batches(facts: Facts) -> bool:
    """Whether a few slow batches are what the accelerator waits for."""
    sums = facts.summary.sums
    return (
        facts.starved and facts.workers > 0 and sums["slow"] >= 3 and facts.slow_share <= _FEW
        and not facts.slow_together
        and sums["slow_stall_s"] >= _TO_BLAME * sums["stall_s"]
    )  # fmt: skip


def out_of_order_helps(facts: Facts) -> bool:
    """The option came with torch 2.6."""
    release = (facts.environment.torch or "0").split(".")[:2]
    new = all(part.isdigit() for part in release) and tuple(map(int, release)) >= (2, 6)
    return new and facts.config.in_order and facts.workers > 1


def useful_prefetch(facts: Facts) -> int | None:
    """The prefetch factor that rides out a slow batch; ``None`` when none that is possible does."""
    wanted = absorbing_prefetch(facts)
    possible = facts.prefetch < wanted <= min(_MOST_PREFETCH, most_prefetch(facts))
    return wanted if possible else None


@case("head-of-line", "A few slow batches hold up the rest")
def slow_batches(facts: Facts) -> Seen | None:
    """One slow batch holds up those behind it.

    Seen by the stall: a quarter or more of it is waiting for a few batches (a fifth of them at the
    most) that took far longer than the median. More workers hardly help. Cured by a prefetch that
    outlasts a slow one, by `in_order=False`, or by making the slow samples ahead of training.
    """
    if not stalled_by_slow_batches(facts):
        return None
    sums = facts.summary.sums
    usual_s = facts.summary.made.quantiles(0.5)[0]
    fix = "Cut the samples that are slow, or make them ahead of training."
    if (prefetch := useful_prefetch(facts)) is not None:
        fix = (f"Set prefetch_factor={prefetch} instead of {facts.prefetch}: enough batches are "
               f"then ready to outlast a slow one. {fix}")  # fmt: skip
    if out_of_order_helps(facts):
        fix = ("Set in_order=False: the others then pass it, and the order of batches is no longer "
               f"the same each time. {fix}")  # fmt: skip
    return Seen(
        f"{sums['slow']:.0f} of {facts.summary.watched:,} batches took "
        f"{format_duration(facts.slow_s)} to make, the median one {format_duration(usual_s)}; "
        f"{percent(sums['slow_stall_s'] / sums['stall_s'])} of the stall was waiting for them.",
        fix,
    )


@case("uneven-workers", "One worker is slower than the others")
def uneven_workers(facts: Facts) -> Seen | None:
    """One worker is slower than the others, in most of its batches.

    Seen by its median time to fetch, 1.2 times that of the others and beyond chance. Cured by
    dividing the data evenly, or by looking at the core that it runs on.
    """
    fetches = {
        number: worker.stages[str(Stage.FETCH)]
        for number, worker in facts.summary.workers.items()
        if number >= 0 and worker.stages[str(Stage.FETCH)].count >= _ENOUGH
    }
    if not facts.starved or len(fetches) < 2:
        return None
    slowest = max(fetches, key=lambda number: _median(fetches[number]))
    others = [sketch for number, sketch in fetches.items() if number != slowest]
    usual_s = float(np.median([_median(sketch) for sketch in others]))
    own_s = _median(fetches[slowest])
    error_s = float(np.hypot(_error(fetches[slowest]), max(map(_error, others))))
    if (
        not usual_s
        or own_s < _SLOWER * usual_s
        or own_s - usual_s < _SURE * error_s
        or isnan(error_s)
    ):
        return None
    seen = counted(fetches[slowest].count, "batch")
    iterable = facts.config.kind == "iterable"
    look = ("how __iter__ divides the data by get_worker_info" if iterable
            else "the samples it gets, which may repeat every num_workers batches")  # fmt: skip
    passing = " in_order=False keeps the others from waiting for it." * out_of_order_helps(facts)
    return Seen(
        f"Worker #{slowest} takes {format_duration(own_s)} to fetch a batch, the others "
        f"{format_duration(usual_s)} (medians over {seen}): {own_s / usual_s:.1f} times as long.",
        f"Look at the core it runs on, and at {look}.{passing}",
    )


def _median(sketch: Sketch) -> float:
    return sketch.quantiles(0.5)[0]


def _error(sketch: Sketch) -> float:
    """Of the median, as if the middle two thirds were normal."""
    low, high = sketch.quantiles(0.16, 0.84)
    return 1.25 * (high - low) / 2 / float(np.sqrt(sketch.count))
