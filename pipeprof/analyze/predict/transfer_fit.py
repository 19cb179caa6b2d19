"""The transfer of a batch from its worker to main, as measured in short runs: what it takes at the
least, and how much more while the worker is at its next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan

import numpy as np

from pipeprof.analyze.predict.dataloader_sim import WARM_S
from pipeprof.analyze.predict.workload import Demand, Measured
from pipeprof.analyze.profile.batch_table import Floats, next_of_worker

_ENOUGH = 10
"""Batches to take a median of."""


class TransferModel:
    """The part of a `Demand` that is the transfer of a batch from its worker to main.

    Its least is taken from ``ones`` where they show it, because one worker that prefetches a single
    batch is never at its next.
    """

    def __init__(
        self, ones: Sequence[Measured], twos: Sequence[Measured], most_s: float = inf
    ) -> None:
        """``most_s``: the longest that receiving a batch takes by itself. What it took beyond that
        was waiting for the worker."""
        groups = [[_Sent(run) for run in runs] for runs in (ones, twos) if runs]
        seen = [run for group in groups for run in group]
        at_next = [run.beside & (run.room_s > 0) for run in seen]
        self.always_beside = sum(int((~beside).sum()) for beside in at_next) < _ENOUGH
        """Workers were at their next batches whenever main received one."""
        send_s = _typical(
            groups, lambda run: run.send_s[~run.sending_beside], lambda run: run.send_s
        )
        way_s = _typical(groups, lambda run: run.way_s[~run.beside], lambda run: run.way_s)
        way_s = min(way_s, most_s)
        rest_s = _typical(groups, lambda run: run.rest_s, lambda run: run.rest_s)
        gaps_s = np.concatenate([run.gap_s for run in seen])
        self.demand = Demand(
            send_s=send_s,
            send_held_s=_mean_wait_s(send_s, [
                (run.send_s[run.sending_beside], run.send_room_s[run.sending_beside])
                for run in seen
            ]),
            gap_s=0.0 if np.isnan(gaps_s).all() else float(np.nanmedian(gaps_s)),
            receive_s=way_s + rest_s,
            receive_warm=_warm((*ones, *twos)),
            receive_held_s=_mean_wait_s(way_s, [
                (run.way_s[run.beside], run.room_s[run.beside]) for run in seen
            ]),
        )  # fmt: skip


def _warm(runs: Sequence[Measured]) -> float:
    """Time to unpickle a batch soon after another one, relative to what it takes later in the same
    run: the median of the ``runs`` that have enough of both."""
    shares = []
    for run in (each.columns for each in runs):
        arrived_s = np.sort(run.arrived_s)
        before = np.searchsorted(arrived_s, run.received_s) - 1
        since_s = np.where(before >= 0, run.received_s - arrived_s[before], nan)
        took_s = run.arrived_s - run.received_s
        warm, cold = took_s[since_s < WARM_S], took_s[since_s >= 2 * WARM_S]
        if min(len(warm), len(cold)) >= _ENOUGH:
            shares.append(float(np.median(warm) / np.median(cold)))
    return min(1.0, float(np.median(shares))) if shares else 1.0


class _Sent:
    """The transfers of a run's batches. [batches], seconds; unknown is NaN."""

    def __init__(self, run: Measured) -> None:
        columns = run.columns
        after = next_of_worker(columns, columns.fetch_start_s)

        def of_next(values: Floats) -> Floats:
            return np.where(after >= 0, values[after], nan)

        next_begun_s, next_made_s = of_next(columns.fetch_start_s), of_next(columns.fetch_end_s)
        self.send_s = columns.sent_s - columns.fetch_end_s
        self.sending_beside = next_begun_s < columns.sent_s
        """The worker was at its next batch before it had sent this one."""
        self.send_room_s = next_made_s - columns.fetch_end_s
        """Until the worker had made that."""
        # what came while main waited for another has been received in that one's time
        in_turn = columns.received_s >= columns.asked_s
        begun_s = np.where(in_turn, np.maximum(columns.asked_s, columns.sent_s), nan)
        self.way_s = columns.arrived_s - begun_s
        self.rest_s = np.where(in_turn, columns.delivered_s - columns.arrived_s, nan)
        self.beside = next_begun_s < columns.arrived_s
        self.room_s = next_made_s - begun_s
        waited = of_next(_dispatched(run)) < columns.fetch_end_s
        self.gap_s = np.where(waited, next_begun_s - columns.fetch_end_s, nan)
        """Between a batch and a next one that was dispatched by then."""


def _dispatched(run: Measured) -> Floats:
    """When each batch was dispatched, if in order: when one was handed out so many before it."""
    columns, ahead = run.columns, run.setting.num_workers * run.setting.prefetch_factor
    handed_out = dict(zip(columns.index, columns.delivered_s, strict=True))
    return np.array([handed_out.get(index - ahead, nan) for index in columns.index])


def _typical(
    groups: Sequence[Sequence[_Sent]],
    undisturbed: Callable[[_Sent], Floats],
    every: Callable[[_Sent], Floats],
) -> float:
    """The median of what was ``undisturbed`` in the first group that has enough of it; else a low
    one of ``every``."""
    for group in groups:
        values = np.concatenate([undisturbed(run) for run in group])
        known = values[~np.isnan(values)]
        if len(known) >= _ENOUGH:
            return float(np.median(known))
    values = np.concatenate([every(run) for group in groups for run in group])
    known = values[~np.isnan(values)]
    return float(np.percentile(known, 10)) if len(known) else 0.0


def _mean_wait_s(base_s: float, runs: Sequence[tuple[Floats, Floats]]) -> float:
    """How much longer it takes while the worker is at its next batch, if that lasts long enough.

    ``runs``: what it took, and when the worker had made that batch, which ends the wait as well.
    The mean of waits that are cut off so (the maximum likelihood of an exponential distribution):
    all time waited over the number of waits that ended by themselves. Infinite if none did.
    """
    waited_s = ended = 0.0
    for took_s, room_s in runs:
        known = ~np.isnan(took_s) & ~np.isnan(room_s)
        more_s = np.maximum(0.0, np.minimum(took_s, room_s)[known] - base_s)
        waited_s += float(more_s.sum())
        ended += int((took_s < room_s)[known].sum())
    return waited_s / ended if ended else inf if waited_s else 0.0
