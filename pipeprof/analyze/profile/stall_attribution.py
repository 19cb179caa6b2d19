"""Each second of stall, charged to what it was waited for.

A stall ends when the awaited batch is handed out. From there it is followed back, each moment to
what held that up (`causes`):

- Main held the batch: its own work is `main` or `sampler`, and `pin` in the pin thread.
- Main received the batch, or another one before it: main's CPU time, and what handing such a batch
  over takes at the least, is `transfer`. The rest was waiting for the interpreter of the batch's
  worker, and is charged to what that worker was at: to its next batch's `decode`, say.
- The worker serialised it: CPU time of its feeder thread is `transfer`, the rest as above.
- The worker made it: its stages. The share in which the worker wanted a core and had none is
  `worker-cpu`, here and above.
- The worker had not begun it: whatever else that was at; `dispatch` if nothing, `start-up` if it
  was only being started.
- `unknown` is what no record shows.

`places` says where the awaited batch was meanwhile, which is not why. Both add up to the stall.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask, Rows
from pipeprof.analyze.profile.hand_over import HandOver, least
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
TRANSFER, PIN = str(Stage.TRANSFER), str(Stage.PIN)

_NOTHING_S = 1e-9
"""Less is rounding."""
_COMPUTES = 0.1
"""Share of the fetch time. A worker that computes less leaves its interpreter to other threads."""
_PRESSURE = 0.1
"""Share of the time in which workers could run, below which waiting for a core is chance."""

Charges = dict[str, Floats]


def causes(columns: Columns) -> tuple[Charges, Charges]:
    """Per batch, the seconds of its stall charged to each cause; and of them, those in which a
    finished batch waited for its worker's interpreter or for a core."""
    walk = _Walk(columns)
    walk.run()
    return walk.charges, walk.held


def places(columns: Columns) -> Charges:
    """Per batch, the seconds of its stall by the stage in which the awaited batch was."""
    known = _known(columns)
    start, end = columns.delivered_s - columns.stall_s, columns.delivered_s
    rows, inline = np.arange(len(columns)), columns.worker < 0

    def until(moment: Floats, otherwise: Floats) -> Floats:
        return np.clip(np.where(np.isnan(moment), otherwise, moment), start, end)

    begun = until(columns.fetch_start_s, end)
    made = np.fmax(begun, until(columns.fetch_end_s, end))
    arrived = np.fmax(made, until(columns.arrived_s, made))
    pinned = np.fmax(arrived, until(columns.pinned_s, arrived))
    before, rest = begun - start, end - pinned
    picked = np.fmin(rest, np.nan_to_num(columns.sampler_s))
    found = {name: np.zeros(len(columns)) for name in STAGES}
    for name, seconds in Activity(columns).between(rows, begun, made).items():
        found[name if name in STAGES else STAGES[3]] += seconds
    found[TRANSFER] = np.where(inline, 0.0, before) + arrived - made
    found[PIN] = pinned - arrived
    found[SAMPLER] = np.where(inline, before, 0.0) + picked
    found[MAIN] = rest - picked
    found = {name: np.where(known, seconds, 0.0) for name, seconds in found.items()}
    found[UNKNOWN] = np.where(known, 0.0, columns.stall_s)
    return found


def ranked(charges: dict[str, float]) -> dict[str, float]:
    """Largest first; what took nothing is left out."""
    ordered = sorted(charges.items(), key=lambda item: -item[1])
    return {name: seconds for name, seconds in ordered if seconds > _NOTHING_S}


class _Walk:
    """Back from the end of each stall to its start, all stalls at a time."""

    def __init__(self, columns: Columns) -> None:
        self.charges: Charges = {}
        self.held: Charges = {}
        self._columns = columns
        self._activity = Activity(columns)
        self._hand_over = HandOver.of(columns, self._activity)
        self._core = _core_shares(columns)
        computing = _computing(columns)
        self._holds = computing >= _COMPUTES
        self._crowd = computing if _pressure(columns) >= _PRESSURE else 0.0
        """Share of a core that a worker wants while it fetches, where cores are short; else 0."""
        self._start = columns.delivered_s - columns.stall_s
        # a batch is free for main's loop once it is pinned, or has arrived
        self._free = np.where(np.isnan(columns.pinned_s), columns.arrived_s, columns.pinned_s)
        self._before = _received_before(columns)

    def run(self) -> None:
        columns, known = self._columns, _known(self._columns)
        rows, inline = np.arange(len(columns)), columns.worker < 0
        self._charge(UNKNOWN, rows[~known], columns.stall_s[~known])
        self._made_in_main(rows[known & inline])
        self._from_workers(rows[known & ~inline & (columns.stall_s > 0)])

    def _charge(self, cause: str, rows: Rows, seconds: Floats, held: bool = False) -> None:
        """``held``: while a finished batch waited for its worker's interpreter, or for a core."""
        for charges in (self.charges, self.held) if held else (self.charges,):
            charges.setdefault(cause, np.zeros(len(self._columns)))[rows] += seconds

    def _made_in_main(self, rows: Rows) -> None:
        columns = self._columns
        start, end = self._start[rows], columns.delivered_s[rows]
        begun = np.clip(columns.fetch_start_s[rows], start, end)
        made = np.clip(columns.fetch_end_s[rows], begun, end)
        pinned = np.fmax(made, np.clip(columns.pinned_s[rows], made, end))
        self._charge(SAMPLER, rows, begun - start)
        self._made(rows, rows, begun, made)
        self._charge(PIN, rows, pinned - made)
        self._charge(MAIN, rows, end - pinned)

    def _from_workers(self, rows: Rows) -> None:
        columns = self._columns
        at = columns.delivered_s[rows]
        free = self._back(at, _or(self._free[rows], columns.fetch_end_s[rows]), rows)
        picked = np.fmin(at - free, np.nan_to_num(columns.sampler_s[rows]))
        self._charge(SAMPLER, rows, picked)
        self._handed_out(rows, free, at - picked)
        batch, at = rows, free
        while len(rows):
            rows, batch, at = self._received(rows, batch, at)

    def _handed_out(self, rows: Rows, start: Floats, end: Floats) -> None:
        """By main, which may have to wait for a core."""
        took_s = end - start
        own_s = np.minimum(took_s, least(took_s[took_s > 0]))
        crowded = self._waited_for_core(start, end) * (took_s - own_s)
        self._charge(WORKER_CPU, rows, crowded)
        self._charge(MAIN, rows, took_s - crowded)

    def _waited_for_core(self, start: Floats, end: Floats) -> Floats:
        """Probability, 0..1, that who had to wait between those moments waited for a core."""
        return np.minimum(1.0, self._crowd * self._activity.fetching(start, end))

    def _received(self, rows: Rows, batch: Rows, at: Floats) -> tuple[Rows, Rows, Floats]:
        """Each stall of ``rows`` is followed back to ``at``, where main had got ``batch``. Returns
        the stalls that continue with a batch received before it, that batch, and where."""
        columns = self._columns
        arrived = self._back(at, columns.arrived_s[batch], rows)
        self._charge(PIN, rows, at - arrived)
        received = self._back(arrived, columns.received_s[batch], rows)
        self._handed_over(rows, batch, received, arrived)
        before = self._before[batch]
        freed = np.where(before >= 0, self._free[before], -np.inf)
        late = (freed > columns.sent_s[batch]) & (received > self._start[rows])
        # main was busy with another batch when this one was sent
        freed = self._back(received, freed, rows)
        self._charge(TRANSFER, rows[late], (received - freed)[late])
        self._sent(rows[~late], batch[~late], received[~late])
        return rows[late], before[late], freed[late]

    def _handed_over(self, rows: Rows, batch: Rows, start: Floats, end: Floats) -> None:
        hand_over = self._hand_over
        share = (end - start) / np.maximum(hand_over.took_s[batch], 1e-12)
        own_s = np.fmin(end - start, hand_over.own_s[batch] * share)
        self._charge(TRANSFER, rows, own_s)
        self._waited(rows, batch, start, end, end - start - own_s)

    def _sent(self, rows: Rows, batch: Rows, at: Floats) -> None:
        """Main waited for ``batch``, which its worker had still to send, make or begin."""
        columns = self._columns
        sent = self._back(at, columns.sent_s[batch], rows)
        piped_s = np.fmin(at - sent, self._hand_over.piped_s)
        self._charge(TRANSFER, rows, piped_s)
        self._waited(rows, batch, sent, at, at - sent - piped_s)
        made = self._back(sent, columns.fetch_end_s[batch], rows)
        own_s = np.fmin(sent - made, columns.serialised_cpu_s[batch])  # all of it where unknown
        self._charge(TRANSFER, rows, own_s)
        self._waited(rows, batch, made, sent, sent - made - own_s)
        begun = self._back(made, columns.fetch_start_s[batch], rows)
        self._made(rows, batch, begun, made)
        self._not_begun(rows, batch, self._start[rows], begun)

    def _made(self, rows: Rows, batch: Rows, start: Floats, end: Floats) -> None:
        for name, seconds in self._activity.between(batch, start, end).items():
            stage, share = name if name in STAGES else STAGES[3], self._core[batch]
            self._charge(stage, rows, seconds * (1 - share))
            self._charge(WORKER_CPU, rows, seconds * share)

    def _not_begun(self, rows: Rows, batch: Rows, start: Floats, end: Floats) -> None:
        causes = {SENDING: TRANSFER, STARTING: START_UP, IDLE: DISPATCH, UNRECORDED: UNKNOWN}
        for name, seconds in self._activity.between(batch, start, end).items():
            self._charge(causes.get(name, name), rows, seconds)

    def _waited(self, rows: Rows, batch: Rows, start: Floats, end: Floats, seconds: Floats) -> None:
        """``seconds`` between ``start`` and ``end`` that a finished batch waited for its worker's
        interpreter, or for a core."""
        share = self._core[batch]
        part = seconds / np.maximum(end - start, 1e-12)
        for name, spent in self._activity.between(batch, start, end).items():
            spent = spent * part
            if name in STAGES and self._holds:
                self._charge(name, rows, spent * (1 - share), held=True)
                self._charge(WORKER_CPU, rows, spent * share, held=True)
            elif name == UNRECORDED:
                self._charge(UNKNOWN, rows, spent)
            else:  # nobody had the interpreter: it waited for a core, if other workers had those
                crowded = self._waited_for_core(start, end)
                self._charge(WORKER_CPU, rows, crowded * spent, held=True)
                self._charge(TRANSFER, rows, (1 - crowded) * spent)

    def _back(self, at: Floats, moment: Floats, rows: Rows) -> Floats:
        """From ``at`` back to ``moment``, but not beyond the stall's start; no step where that is
        not known."""
        return np.fmin(at, np.fmax(_or(moment, at), self._start[rows]))


def _known(columns: Columns) -> Mask:
    """Batches that have records."""
    made = np.isfinite(columns.fetch_start_s) & np.isfinite(columns.fetch_end_s)
    return made & (columns.worker >= -1)


def _received_before(columns: Columns) -> Rows:
    """The batch that main received before each; -1 where there is none."""
    before = np.full(len(columns), -1)
    order = np.argsort(columns.received_s, kind="stable")
    order = order[: int(np.isfinite(columns.received_s).sum())]
    before[order[1:]] = order[:-1]
    return before


def _core_shares(columns: Columns) -> Floats:
    """Share of each batch's fetch in which its worker waited for a core; of a batch whose resources
    were not sampled, the mean of those that were."""
    made_s = columns.made_s
    seen = np.isfinite(columns.runqueue_s) & (made_s > 0)
    if not seen.any():
        return np.zeros(len(columns))
    typical = columns.runqueue_s[seen].sum() / made_s[seen].sum()
    share = np.where(seen, columns.runqueue_s / np.maximum(made_s, 1e-12), typical)
    return np.clip(share, 0.0, 1.0)


def _pressure(columns: Columns) -> float:
    """Share of the time in which workers could run, that they waited for a core."""
    seen = np.isfinite(columns.runqueue_s) & np.isfinite(columns.cpu_s)
    waited_s, ran_s = columns.runqueue_s[seen].sum(), columns.cpu_s[seen].sum()
    return float(waited_s / (waited_s + ran_s)) if waited_s + ran_s > 0 else 0.0


def _computing(columns: Columns) -> float:
    """Share of the fetch time that is CPU time or waiting for a core; 1 where unknown."""
    seen = np.isfinite(columns.cpu_s) & np.isfinite(columns.runqueue_s)
    made_s = columns.made_s[seen].sum()
    return float((columns.cpu_s + columns.runqueue_s)[seen].sum() / made_s) if made_s > 0 else 1.0


def _or(moment: Floats, otherwise: Floats) -> Floats:
    return np.where(np.isnan(moment), otherwise, moment)
