"""Estimate the transfer of a batch from its worker to main, from short measured runs.

A transfer has a least duration, and takes longer while the worker fetches its next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan

import numpy as np

from pipeprof.analyze.predict.dataloader_sim import WARM_S
from pipeprof.analyze.predict.workload import Demand, Measured
from pipeprof.analyze.profile.batch_table import Floats, next_of_worker, pinned_before_s
from pipeprof.analyze.thresholds import LEAST_UNDISTURBED


class TransferModel:
    """The part of a `Demand` that is the transfer of a batch from its worker to main.

    The least duration is taken from ``ones`` where they show it, because one worker that prefetches
    a single batch is never at its next.
    """

    def __init__(
        self, ones: Sequence[Measured], twos: Sequence[Measured], most_s: float = inf
    ) -> None:
        """``most_s`` is the longest that receiving a batch takes by itself. Longer ones include a
        wait for the worker."""
        groups = [[_Transfers(run) for run in runs] for runs in (ones, twos) if runs]
        runs = [run for group in groups for run in group]
        undisturbed = sum(int((~(run.concurrent & (run.room_s > 0))).sum()) for run in runs)
        self.always_concurrent = undisturbed < LEAST_UNDISTURBED
        """Whether workers were at their next batches whenever main received one."""
        send_s = _typical(
            groups, lambda run: run.send_s[~run.send_concurrent], lambda run: run.send_s
        )
        path_s = _typical(groups, lambda run: run.path_s[~run.concurrent], lambda run: run.path_s)
        path_s = min(path_s, most_s)
        rest_s = _typical(groups, lambda run: run.rest_s, lambda run: run.rest_s)
        gaps_s = np.concatenate([run.gap_s for run in runs])
        self.demand = Demand(
            send_s=send_s,
            send_blocked_s=_mean_wait_s(send_s, [
                (run.send_s[run.send_concurrent], run.send_room_s[run.send_concurrent])
                for run in runs
            ]),
            gap_s=0.0 if np.isnan(gaps_s).all() else float(np.nanmedian(gaps_s)),
            receive_s=path_s + rest_s,
            receive_warm=_warm_share((*ones, *twos)),
            receive_blocked_s=_mean_wait_s(path_s, [
                (run.path_s[run.concurrent], run.room_s[run.concurrent]) for run in runs
            ]),
            take_s=_typical(groups, lambda run: run.take_s, lambda run: run.take_s),
        )  # fmt: skip


def _warm_share(runs: Sequence[Measured]) -> float:
    """Return the time to unpickle a batch soon after another, relative to later ones in its run. It
    is the median of the ``runs`` that have enough of both."""
    shares = []
    for run in (each.columns for each in runs):
        arrived_s = np.sort(run.arrived_s)
        before = np.searchsorted(arrived_s, run.received_s) - 1
        since_s = np.where(before >= 0, run.received_s - arrived_s[before], nan)
        took_s = run.arrived_s - run.received_s
        warm, cold = took_s[since_s < WARM_S], took_s[since_s >= 2 * WARM_S]
        if min(len(warm), len(cold)) >= LEAST_UNDISTURBED:
            shares.append(float(np.median(warm) / np.median(cold)))
    return min(1.0, float(np.median(shares))) if shares else 1.0


class _Transfers:
    """The transfers of a run's batches. [batches], seconds; NaN unknown."""

    def __init__(self, run: Measured) -> None:
        columns = run.columns
        next_rows = next_of_worker(columns, columns.fetch_start_s)

        def of_next(values: Floats) -> Floats:
            return np.where(next_rows >= 0, values[next_rows], nan)

        next_begun_s, next_made_s = of_next(columns.fetch_start_s), of_next(columns.fetch_end_s)
        self.send_s = columns.sent_s - columns.fetch_end_s
        """From the end of the fetch until the batch was sent."""
        self.send_concurrent = next_begun_s < columns.sent_s
        """Whether the worker began its next batch before it had sent this one."""
        self.send_room_s = next_made_s - columns.fetch_end_s
        """From the end of the fetch until the end of the worker's next fetch."""
        # a batch received while main waited for another counts in the time of that one
        pins = run.setting.pin_memory
        awaited = pins | (columns.received_s >= columns.asked_s)
        free_s = columns.asked_s
        if pins:
            free_s = pinned_before_s(columns.pinned_s, columns.index)
        begun_s = np.where(awaited, np.maximum(free_s, columns.sent_s), nan)
        self.path_s = columns.arrived_s - begun_s
        """From sent, and the receiver free, until the batch was unpickled."""
        delivered_s = columns.arrived_s if pins else columns.delivered_s
        self.rest_s = np.where(awaited, delivered_s - columns.arrived_s, nan)
        """From unpickled to delivered; 0 where a thread takes the batch to pin it."""
        self.take_s = np.zeros(len(columns))
        """From pinned, and asked for, to delivered; 0 where memory is not pinned."""
        if pins:
            self.take_s = columns.delivered_s - np.fmax(columns.asked_s, columns.pinned_s)
        self.concurrent = next_begun_s < columns.arrived_s
        """Whether the worker began its next batch before this one was unpickled."""
        self.room_s = next_made_s - begun_s
        """From sent, and the receiver free, until the end of the worker's next fetch."""
        task_waited = of_next(_dispatched_s(run)) < columns.fetch_end_s
        self.gap_s = np.where(task_waited, next_begun_s - columns.fetch_end_s, nan)
        """Between this batch and the next, if that was dispatched by then."""


def _dispatched_s(run: Measured) -> Floats:
    """Return when each batch was dispatched. [batches]

    That is when an earlier one was handed out. In order, it is the batch so many before. In any
    order, it is the one that the same worker fetched so many before.
    """
    columns, setting = run.columns, run.setting
    if setting.in_order:
        handed_out = dict(zip(columns.index, columns.delivered_s, strict=True))
        return np.array([handed_out.get(each - setting.in_flight, nan) for each in columns.index])
    dispatched_s = np.full(len(columns), nan)
    rows = np.lexsort((columns.fetch_start_s, columns.worker))
    before, after = rows[: -setting.prefetch_factor], rows[setting.prefetch_factor :]
    same = columns.worker[before] == columns.worker[after]
    dispatched_s[after[same]] = columns.delivered_s[before[same]]
    return dispatched_s


def _typical(
    groups: Sequence[Sequence[_Transfers]],
    undisturbed: Callable[[_Transfers], Floats],
    every: Callable[[_Transfers], Floats],
) -> float:
    """Return the median of the ``undisturbed`` times in the first group that has enough of them;
    else a low percentile of ``every`` time."""
    for group in groups:
        values = np.concatenate([undisturbed(run) for run in group])
        known = values[~np.isnan(values)]
        if len(known) >= LEAST_UNDISTURBED:
            return float(np.median(known))
    values = np.concatenate([every(run) for group in groups for run in group])
    known = values[~np.isnan(values)]
    return float(np.percentile(known, 10)) if len(known) else 0.0


def _mean_wait_s(base_s: float, runs: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the mean additional seconds of a transfer while the worker fetches its next batch.

    ``runs`` are the durations of the transfers, and the time until the end of that fetch, which
    ends a wait as well. The mean of waits that are cut off so is all time waited over the number of
    waits that ended by themselves: the maximum likelihood of an exponential distribution. It is
    infinite if none did.
    """
    waited_s = ended = 0.0
    for took_s, room_s in runs:
        known = ~np.isnan(took_s) & ~np.isnan(room_s)
        more_s = np.maximum(0.0, np.minimum(took_s, room_s)[known] - base_s)
        waited_s += float(more_s.sum())
        ended += int((took_s < room_s)[known].sum())
    return waited_s / ended if ended else inf if waited_s else 0.0
