"""Choose which setting of a grid to try next: only one that can change the recommendation.

After a run with one worker and one with two, the setting that is predicted to be best is tried
next. A setting is not tried if it cannot be better by more than `EQUALLY_FAST`, and cannot be as
good and cheaper.

The run with two workers is left out where that with one shows that no setting can be better, as it
feeds the accelerator. So it is where another form of the same data is out of reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.sweep.noise import Noise
from pipeprof.analyze.sweep.outlooks import Outlook, alike, calibration, predict_untried
from pipeprof.analyze.thresholds import EQUALLY_FAST


@dataclass(frozen=True)
class Plan:
    """What to do next."""

    trial: Setting | None
    """The setting to try next; ``None`` where no other can change the recommendation."""
    outlooks: tuple[Outlook, ...] = ()
    """Predictions for all untried settings; empty while the runs do not show enough."""
    is_cheaper: bool = False
    """Whether ``trial`` is to show only whether a cheaper setting is as fast."""


def plan(
    grid: Sequence[Setting], tried: Sequence[Measured], cores: float, noise: Noise | None = None
) -> Plan:
    """Return what to try next of ``grid``, see `predict_untried` for the arguments."""
    return choose_next(grid, tried, predict_untried(grid, tried, cores, noise))


def choose_next(
    grid: Sequence[Setting],
    tried: Sequence[Measured],
    outlooks: tuple[Outlook, ...],
    rival: float = 0.0,
    for_comparison: bool = False,
) -> Plan:
    """Return the setting of ``grid`` to try next.

    Args:
        grid: The settings.
        tried: The runs so far, each setting once.
        outlooks: The predictions of `predict_untried` from these.
        rival: The batches/s of another form of the same data, as another format. Settings that
            cannot reach it are not tried.
        for_comparison: Whether the fastest setting is wanted even where it cannot reach ``rival``.
    """
    grid, tried = alike(grid, tried)
    known = {run.setting for run in tried}
    one, two = calibration(grid)
    if one not in known:
        return Plan(one)
    faster = _faster(outlooks, 0.0 if for_comparison else rival)
    shown = two in known or (outlooks and not any(each.setting.num_workers for each in faster))
    if not shown:
        return Plan(two)
    if faster:
        return Plan(max(faster, key=lambda each: each.batches_per_s).setting, outlooks)
    cheaper = _cheaper(outlooks, tried, rival)
    if cheaper is None and len(tried) == 1 and not rival:
        return Plan(two)  # a single trial does not show how much runs differ
    return Plan(cheaper, outlooks, is_cheaper=True)


def _faster(outlooks: Sequence[Outlook], rival: float) -> Sequence[Outlook]:
    """Return the outlooks that may be faster than all trials, and as fast as ``rival``."""
    return [
        each for each in outlooks
        if each.may_be_faster and each.most > rival * (1 - EQUALLY_FAST)
    ]  # fmt: skip


def _cheaper(
    outlooks: Sequence[Outlook], tried: Sequence[Measured], rival: float
) -> Setting | None:
    """Return the cheapest untried setting that is predicted as fast as the best of ``tried``, if it
    is cheaper.

    There is none where ``rival`` is faster. Where it is slower, settings with fewer workers alone
    count as cheaper.
    """
    best = max(run.batches_per_s for run in tried)
    if best < rival * (1 - EQUALLY_FAST):
        return None
    near = best * (1 - EQUALLY_FAST)
    chosen = min(_cost(run.setting) for run in tried if run.batches_per_s >= near)
    slower = [run.setting for run in tried if run.batches_per_s < near]
    limit = (chosen[0], 0) if rival else chosen
    cheaper = [
        each.setting for each in outlooks
        if each.batches_per_s >= near and _cost(each.setting) < limit
        and not any(_has_less(each.setting, other) for other in slower)
    ]  # fmt: skip
    return min(cheaper, key=_cost, default=None)


def _has_less(setting: Setting, other: Setting) -> bool:
    """Return whether ``setting`` has at most the workers and the prefetching of ``other``, and so
    cannot be faster. No workers at all are another matter, as no batch is handed over."""
    fewer = 0 < setting.num_workers <= other.num_workers
    return fewer and setting.prefetch_factor <= other.prefetch_factor


def _cost(setting: Setting) -> tuple[int, int]:
    return setting.num_workers, setting.prefetch_factor if setting.num_workers else 0
