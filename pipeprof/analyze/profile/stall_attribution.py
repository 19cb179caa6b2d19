"""Charge each second of stall to the cause that was waited for.

A stall ends when the awaited batch is handed out. `causes` follows it back from there, and charges
each moment to what delayed the batch:

- Main had the batch. Its own work is `main` or `sampler`, and `pin` in the pin thread.
- Main received the batch, or another one before it. Main's CPU time, and what handing over such a
  batch takes at the least, is `transfer`. The rest was waiting for the interpreter of the batch's
  worker, and is charged to what that worker did: `decode` of its next batch, say.
- The worker serialised the batch. The CPU time of its feeder thread is `transfer`, the rest as
  above.
- The worker fetched the batch: the stages of the fetch. The share in which the worker wanted a core
  and had none is `worker-cpu`, here and above.
- The worker had not begun the batch: whatever else it did. Idle time is `dispatch`, and time until
  it was started is `start-up`.
- `unknown` is what no record shows.

So is a finished batch charged while no worker sets the pace (`pace`). While one does, that time is
charged to what this worker does: main could have the batch sooner, and would then wait longer for
the next.

`places` says in which stage the awaited batch was meanwhile, which is not why. Both add up to the
stall.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile import core_wait
from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask, Rows
from pipeprof.analyze.profile.hand_over import HandOver, in_order_received, least
from pipeprof.analyze.profile.pace import Pace
from pipeprof.analyze.profile.worker_activity import (
    IDLE,
    SENDING,
    STAGES,
    STARTING,
    UNRECORDED,
    Activity,
)
from pipeprof.model import Stage

UNKNOWN, SAMPLER, MAIN = "unknown", "sampler", "main"
DISPATCH, START_UP, WORKER_CPU = "dispatch", "start-up", "worker-cpu"
OTHER_LOADERS = "other-loaders"
"""Other loaders, from which the loop takes batches in the same step."""
PIPELINE = "pipeline"
"""A stage of a loader that works in threads, see `pipeline_stages`."""
TRANSFER, PIN = str(Stage.TRANSFER), str(Stage.PIN)

_LEAST_S = 1e-9
"""Shortest stall of a cause. Less is rounding."""
_LEAST_COMPUTING_SHARE = 0.1
"""Share of the fetch time. A worker that computes less leaves its interpreter to other threads."""
_LEAST_CORE_WAIT = 0.1
"""Share of the workers' runnable time, or of main's time. Less waiting for a core is chance."""

Charges = dict[str, Floats]


def causes(columns: Columns, main_core_wait: float | None = None) -> tuple[Charges, Charges]:
    """Return the seconds of each batch's stall by cause, and the part of them in which a finished
    batch waited for its worker's interpreter or for a core. [batches]

    ``main_core_wait`` is the share of the run in which main's loop waited for a core.
    """
    walk = _BackwardWalk(columns, main_core_wait or 0.0)
    walk.run()
    return walk.charges, walk.blocked


def places(columns: Columns) -> Charges:
    """Return the seconds of each batch's stall by the stage in which it was meanwhile. [batches]"""
    known = _known(columns)
    start, end = columns.delivered_s - columns.stall_s, columns.delivered_s
    rows, inline = np.arange(len(columns)), columns.worker < 0

    def within(moment: Floats, otherwise: Floats) -> Floats:
        return np.clip(np.where(np.isnan(moment), otherwise, moment), start, end)

    begun = within(columns.fetch_start_s, end)
    made = np.fmax(begun, within(columns.fetch_end_s, end))
    arrived = np.fmax(made, within(columns.arrived_s, made))
    pinned = np.fmax(arrived, within(columns.pinned_s, arrived))
    before, rest = begun - start, end - pinned
    picked = np.fmin(rest, np.nan_to_num(columns.sampler_s))
    charges = {name: np.zeros(len(columns)) for name in STAGES}
    for name, seconds in Activity(columns).between(rows, begun, made).items():
        charges[name if name in STAGES else STAGES[3]] += seconds
    charges[TRANSFER] = np.where(inline, 0.0, before) + arrived - made
    charges[PIN] = pinned - arrived
    charges[SAMPLER] = np.where(inline, before, 0.0) + picked
    charges[MAIN] = rest - picked
    charges = {name: np.where(known, seconds, 0.0) for name, seconds in charges.items()}
    charges[UNKNOWN] = np.where(known, 0.0, columns.stall_s)
    return charges


def ranked(charges: dict[str, float]) -> dict[str, float]:
    """Return ``charges``, largest first, without those of no time."""
    ordered = sorted(charges.items(), key=lambda item: -item[1])
    return {name: seconds for name, seconds in ordered if seconds > _LEAST_S}


class _BackwardWalk:
    """Follow all stalls from their ends back to their starts, and charge each moment.

    ``rows`` are the rows of the stalls, and ``batch`` the rows of the batches that each waits for.
    """

    def __init__(self, columns: Columns, main_core_wait: float) -> None:
        self.charges: Charges = {}
        self.blocked: Charges = {}
        """The charges for which a finished batch waited for its worker's interpreter or a core."""
        self._columns = columns
        self._activity = Activity(columns)
        self._hand_over = HandOver.of(columns, self._activity)
        self._pace = Pace(columns)
        self._core_wait = core_wait.core_wait_shares(columns)
        computing = core_wait.computing_share(columns)
        self._blocks_interpreter = computing >= _LEAST_COMPUTING_SHARE
        """Whether a worker that fetches keeps its interpreter from its other threads."""
        wait = max(core_wait.runnable_core_wait(columns), main_core_wait)
        short_of_cores = wait >= _LEAST_CORE_WAIT
        self._core_contention = computing if short_of_cores else 0.0
        """Share of a core that a worker wants while it fetches, where cores are short; else 0."""
        self._start = columns.delivered_s - columns.stall_s
        # a batch is free for main's loop once it is pinned, or has arrived
        self._free = np.where(np.isnan(columns.pinned_s), columns.arrived_s, columns.pinned_s)
        self._before = _received_before(columns)

    def run(self) -> None:
        """Charge all stalls."""
        columns, known = self._columns, _known(self._columns)
        rows, inline = np.arange(len(columns)), columns.worker < 0
        self._charge(UNKNOWN, rows[~known], columns.stall_s[~known])
        self._charge_inline(rows[known & inline])
        self._charge_with_workers(rows[known & ~inline & (columns.stall_s > 0)])

    def _charge(self, cause: str, rows: Rows, seconds: Floats, blocked: bool = False) -> None:
        """Add ``seconds`` to ``cause``; with ``blocked`` to `blocked` as well."""
        for charges in (self.charges, self.blocked) if blocked else (self.charges,):
            charges.setdefault(cause, np.zeros(len(self._columns)))[rows] += seconds

    def _charge_stage(
        self, stage: str, rows: Rows, batch: Rows, seconds: Floats, blocked: bool = False
    ) -> None:
        """Charge ``seconds`` of a stage of ``batch``: the share in which its worker had no core to
        `worker-cpu`."""
        share = self._core_wait[batch]
        self._charge(stage, rows, seconds * (1 - share), blocked)
        self._charge(WORKER_CPU, rows, seconds * share, blocked)

    def _charge_after_fetch(
        self, cause: str, rows: Rows, start: Floats, end: Floats, seconds: Floats
    ) -> None:
        """Charge ``seconds`` between ``start`` and ``end`` in which a finished batch was sent,
        received, pinned or handed out. While a worker sets the pace, they are charged to what that
        worker did."""
        batch, begun, ended = self._pace.within(start, end)
        paced = batch >= 0
        part, rest_s = seconds / np.maximum(end - start, 1e-12), seconds.copy()
        did = self._activity.between(batch[paced], begun[paced], ended[paced])
        for name in STAGES:
            spent = did[name] * part[paced]
            self._charge_stage(name, rows[paced], batch[paced], spent)
            rest_s[paced] -= spent
        self._charge(cause, rows, np.maximum(0.0, rest_s))

    def _charge_inline(self, rows: Rows) -> None:
        """Charge stalls for batches that main fetched itself."""
        columns = self._columns
        start, end = self._start[rows], columns.delivered_s[rows]
        begun = np.clip(columns.fetch_start_s[rows], start, end)
        made = np.clip(columns.fetch_end_s[rows], begun, end)
        pinned = np.fmax(made, np.clip(columns.pinned_s[rows], made, end))
        self._charge(SAMPLER, rows, begun - start)
        self._charge_fetch(rows, rows, begun, made)
        self._charge(PIN, rows, pinned - made)
        self._charge(MAIN, rows, end - pinned)

    def _charge_with_workers(self, rows: Rows) -> None:
        """Charge stalls for batches of workers. Each continues with the batch that main received
        before, as long as main was busy with that one."""
        columns = self._columns
        at = columns.delivered_s[rows]
        free = self._back(at, _or(self._free[rows], columns.fetch_end_s[rows]), rows)
        picked = np.fmin(at - free, np.nan_to_num(columns.sampler_s[rows]))
        self._charge_after_fetch(SAMPLER, rows, free, at, picked)
        self._charge_hand_out(rows, free, at - picked)
        batch, at = rows, free
        while len(rows):
            rows, batch, at = self._charge_batch(rows, batch, at)

    def _charge_hand_out(self, rows: Rows, start: Floats, end: Floats) -> None:
        """Charge main's time to hand out a batch. It may include waiting for a core."""
        took_s = end - start
        own_s = np.minimum(took_s, least(took_s[took_s > 0]))
        core_wait_s = self._core_wait_probability(start, end) * (took_s - own_s)
        self._charge(WORKER_CPU, rows, core_wait_s)
        self._charge_after_fetch(MAIN, rows, start, end, took_s - core_wait_s)

    def _core_wait_probability(self, start: Floats, end: Floats) -> Floats:
        """Return the probability that a wait between ``start`` and ``end`` was for a core, 0..1."""
        return np.minimum(1.0, self._core_contention * self._activity.fetching(start, end))

    def _charge_batch(self, rows: Rows, batch: Rows, at: Floats) -> tuple[Rows, Rows, Floats]:
        """Charge the time of each stall before ``at``, when main had ``batch``. Returns the stalls
        for which main was busy with another batch before, that batch, and when main had it."""
        columns = self._columns
        arrived = self._back(at, columns.arrived_s[batch], rows)
        self._charge_after_fetch(PIN, rows, arrived, at, at - arrived)
        received = self._back(arrived, columns.received_s[batch], rows)
        self._charge_receipt(rows, batch, received, arrived)
        before = self._before[batch]
        freed = np.where(before >= 0, self._free[before], -np.inf)
        main_was_busy = (freed > columns.sent_s[batch]) & (received > self._start[rows])
        freed = self._back(received, freed, rows)
        another_s = np.where(main_was_busy, received - freed, 0.0)
        self._charge_after_fetch(TRANSFER, rows, freed, received, another_s)
        idle = ~main_was_busy
        self._charge_worker(rows[idle], batch[idle], received[idle])
        return rows[main_was_busy], before[main_was_busy], freed[main_was_busy]

    def _charge_receipt(self, rows: Rows, batch: Rows, start: Floats, end: Floats) -> None:
        """Charge the time in which main received ``batch``."""
        hand_over = self._hand_over
        share = (end - start) / np.maximum(hand_over.took_s[batch], 1e-12)
        own_s = np.fmin(end - start, hand_over.own_s[batch] * share)
        self._charge_after_fetch(TRANSFER, rows, start, end, own_s)
        self._charge_blocked(rows, batch, start, end, end - start - own_s)

    def _charge_worker(self, rows: Rows, batch: Rows, at: Floats) -> None:
        """Charge the time in which main waited for a worker to begin, fetch and send ``batch``."""
        columns = self._columns
        sent = self._back(at, columns.sent_s[batch], rows)
        piped_s = np.fmin(at - sent, self._hand_over.piped_s)
        self._charge_after_fetch(TRANSFER, rows, sent, at, piped_s)
        self._charge_blocked(rows, batch, sent, at, at - sent - piped_s)
        made = self._back(sent, columns.fetch_end_s[batch], rows)
        own_s = np.fmin(sent - made, columns.serialised_cpu_s[batch])  # all of it where unknown
        self._charge_after_fetch(TRANSFER, rows, made, sent, own_s)
        self._charge_blocked(rows, batch, made, sent, sent - made - own_s)
        begun = self._back(made, columns.fetch_start_s[batch], rows)
        self._charge_fetch(rows, batch, begun, made)
        self._charge_before_fetch(rows, batch, self._start[rows], begun)

    def _charge_fetch(self, rows: Rows, batch: Rows, start: Floats, end: Floats) -> None:
        """Charge the time in which ``batch`` was fetched."""
        for name, seconds in self._activity.between(batch, start, end).items():
            self._charge_stage(name if name in STAGES else STAGES[3], rows, batch, seconds)

    def _charge_before_fetch(self, rows: Rows, batch: Rows, start: Floats, end: Floats) -> None:
        """Charge the time in which the worker of ``batch`` had not begun it."""
        causes = {SENDING: TRANSFER, STARTING: START_UP, IDLE: DISPATCH, UNRECORDED: UNKNOWN}
        for name, seconds in self._activity.between(batch, start, end).items():
            self._charge(causes.get(name, name), rows, seconds)

    def _charge_blocked(
        self, rows: Rows, batch: Rows, start: Floats, end: Floats, seconds: Floats
    ) -> None:
        """Charge the ``seconds`` between ``start`` and ``end`` in which a finished batch waited for
        its worker's interpreter, or for a core."""
        part = seconds / np.maximum(end - start, 1e-12)
        for name, spent in self._activity.between(batch, start, end).items():
            spent = spent * part
            if name in STAGES and self._blocks_interpreter:
                self._charge_stage(name, rows, batch, spent, blocked=True)
            elif name == UNRECORDED:
                self._charge(UNKNOWN, rows, spent)
            else:  # the interpreter was free: the batch waited for a core, if others used them all
                probability = self._core_wait_probability(start, end)
                self._charge(WORKER_CPU, rows, probability * spent, blocked=True)
                self._charge(TRANSFER, rows, (1 - probability) * spent)

    def _back(self, at: Floats, moment: Floats, rows: Rows) -> Floats:
        """Return ``moment``, but not after ``at`` and not before the stall's start; ``at`` where
        ``moment`` is unknown."""
        return np.fmin(at, np.fmax(_or(moment, at), self._start[rows]))


def _known(columns: Columns) -> Mask:
    """Return which batches have records. [batches]"""
    made = np.isfinite(columns.fetch_start_s) & np.isfinite(columns.fetch_end_s)
    return made & (columns.worker >= -1)


def _received_before(columns: Columns) -> Rows:
    """Return the row of the batch that main received before each; -1 where there is none."""
    before = np.full(len(columns), -1)
    order = in_order_received(columns)
    before[order[1:]] = order[:-1]
    return before


def _or(moment: Floats, otherwise: Floats) -> Floats:
    """Return ``moment``, and ``otherwise`` where that is NaN."""
    return np.where(np.isnan(moment), otherwise, moment)
