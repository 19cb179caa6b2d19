"""What one run may mean: calibrations that differ in what it leaves open, each fitted to it.

A run tells what its batches took, and not what more workers would share: whether cores slow each
other down that were not all busy, and, without workers, what a batch's way from one takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, log

import numpy as np

from pipeprof.analyze.predict.batch_costs import BatchCosts, cpu_of
from pipeprof.analyze.predict.calibrate import Calibration, may_share
from pipeprof.analyze.predict.dataloader_sim import simulate_steady
from pipeprof.analyze.predict.predict import BATCHES
from pipeprof.analyze.predict.receive_fit import receiving
from pipeprof.analyze.predict.transfer_fit import TransferModel
from pipeprof.analyze.predict.workload import Demand, Link, Machine, Measured
from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.thresholds import LEAST_BATCHES_TO_SIMULATE

_WAITING, _COMPUTING = 0.03, 0.07
"""By so much, relatively, a run differs from another in the same setting, where its workers wait
and where they compute: one run cannot tell. `benchmarks.prediction` prints it as noise."""
_CROWDED = 0.8
"""The least speed of a core when all are busy, of that of one alone."""
_JITTER = 0.1
"""Batches that are all alike would fall into step, and all want a core at once; real ones hardly
do."""
_ALL_BUSY = 0.9
"""Of the time: how that slows cores is in what was measured."""
_MATTERS = 0.1
"""Of making a batch: less CPU time does not crowd the cores, less waiting fills no storage."""
_TRAVELS = (1.0, 4.0)
"""Times what it takes at least: a batch's way from a worker where none has sent one yet."""
_LONG = 3.0
"""Times that: so long main may have waited for the worker's interpreter instead."""
_COMPUTES = 0.5
"""Of making a batch: workers that compute less leave their interpreters to others."""
_FITS = 3
_MOST = 2.0
"""Times what they seemed to cost, either way: batches are not fitted to more."""
_KEPT = 0.5
"""Of the error that was fitted away may be there in another setting."""


@dataclass(frozen=True)
class Circumstances:
    """Of the run, beside its batches."""

    cores: float
    """For this training alone."""
    main_cpu_s: float = 0.0
    """Of the training process, for a batch that workers make, but for receiving it."""
    travel_s: float = 0.0
    """The least that main spends on that."""
    pinned: bool = False
    """A thread beside the training receives."""
    alone: bool = False
    """It is known that what workers wait for has room for more of them."""


class RunMeanings:
    """``run``: its steady part."""

    def __init__(self, run: Measured, known: Circumstances) -> None:
        self._run, self._known = run, known
        columns = run.columns
        self._step_cpu_s = min(float(columns.step_s.mean()), max(0.0, known.main_cpu_s))
        self.step_s = np.maximum(0.0, columns.step_s - self._step_cpu_s)
        """The training steps, but for what main computes in them. [batches]"""
        self._cpu_s = cpu_of(columns)
        self._computing = float(self._cpu_s.sum() / columns.made_s.sum())
        self._blocked_s = _blocked(columns, self._cpu_s)
        waits = self._blocked_s.sum() > _MATTERS * columns.made_s.sum()
        self.shares = bool(waits) and not known.alone and may_share(columns)
        """Whether what workers wait for may have no room for more of them."""
        self.every = tuple(map(self._fitted, self._variants()))
        """At least one."""

    def rate(self, meaning: Calibration, demands: Sequence[Demand]) -> float:
        """Batches/s of such batches in the run's setting; they come round again where they are too
        few."""
        setting = self._run.setting
        enough = setting.unsteady + LEAST_BATCHES_TO_SIMULATE
        more = -(-enough // len(demands)) if len(demands) < enough else 1
        run = simulate_steady([*demands] * more, self.step_s, setting, meaning.machine)
        return run.batches_per_s

    def _variants(self) -> Iterator[Calibration]:
        """What the run may mean."""
        run, known = self._run, self._known
        cpu_s, blocked_s = self._cpu_s, self._blocked_s
        tried = max(1, run.setting.num_workers) if self.shares else inf
        computing = self._computing
        busy = cpu_s.sum() / run.seconds + self._step_cpu_s * run.batches_per_s
        all_busy = min(1.0, max(0.0, busy - (known.cores - 1)))
        uneven = np.random.default_rng(0).lognormal(0.0, _JITTER, len(cpu_s))
        uneven /= uneven.mean()
        crowds = computing > _MATTERS and all_busy < _ALL_BUSY
        for speed in (1.0, _CROWDED) if crowds else (1.0,):
            own = 1 - all_busy * (1 - speed)  # CPU time is longer on cores that are crowded
            for transfer in self._transfers():
                demands = BatchCosts(cpu_s * uneven * own, blocked_s * uneven).demands(transfer)
                receiving = transfer.receive_s * run.batches_per_s
                yield Calibration(
                    demands=demands, inline=_inline(demands),
                    machine=Machine(known.cores, speed, Link(each=1.0)),
                    shared_from=inf, tried=tried, disagreement=0.0,
                    noise=hypot(_WAITING, _COMPUTING * max(computing, receiving)),
                )  # fmt: skip

    def _transfers(self) -> Iterator[Demand]:
        """What a batch takes from worker to main."""
        run, least_s = self._run, self._known.travel_s
        if not run.setting.num_workers:
            for times in _TRAVELS:
                yield Demand(
                    send_s=times * least_s / 2, receive_s=times * least_s,
                    step_cpu_s=self._step_cpu_s,
                )  # fmt: skip
            return
        transfer, most_s = TransferModel([run], []), _LONG * least_s
        if not transfer.always_beside or transfer.demand.receive_s <= most_s:
            yield self._received(transfer.demand)
            return
        # main was busy so long, or waited for the interpreter of a worker that computes
        clocked_s = run.columns.unpickled_cpu_s
        computed_s = None if np.isnan(clocked_s).all() else float(np.nanmedian(clocked_s))
        if computed_s is None or self._computing < _COMPUTES:
            yield self._received(transfer.demand)
        yield self._received(
            TransferModel([run], [], max(most_s, _LONG * (computed_s or 0.0))).demand
        )

    def _received(self, transfer: Demand) -> Demand:
        """A thread that pins also receives, while main trains."""
        columns = self._run.columns
        transfer = replace(transfer, step_cpu_s=self._step_cpu_s)
        if not self._known.pinned or np.isnan(columns.pinned_s).all():
            return transfer
        taken_s = np.nanmedian(columns.delivered_s - np.fmax(columns.asked_s, columns.pinned_s))
        return replace(transfer, receive_s=float(taken_s), receive_held_s=0.0)

    def _fitted(self, found: Calibration) -> Calibration:
        """With batches that cost so many times what they seemed to that the run is repeated."""
        sent = not np.isnan(self._run.columns.sent_s).all()
        if self._run.setting.num_workers and sent and not self._known.pinned:
            found = replace(found, demands=self._late(found))
        times, fitted = 1.0, found
        off = self._off(found)
        for _ in range(_FITS):
            times = min(_MOST, max(1 / _MOST, times * off))
            fitted = replace(
                found,
                demands=costlier(found.demands, times), inline=costlier(found.inline, times),
            )  # fmt: skip
            off = self._off(fitted)
        return replace(fitted, disagreement=hypot(_KEPT * log(times), off - 1))

    def _late(self, found: Calibration) -> tuple[Demand, ...]:
        """With main receiving batches as late as it did."""
        like = receiving(found.demands[:BATCHES], found.machine, [self._run])[0]
        return tuple(
            replace(
                each, late_s=like.late_s,
                receive_s=like.receive_s, receive_held_s=like.receive_held_s,
            )
            for each in found.demands
        )  # fmt: skip

    def _off(self, found: Calibration) -> float:
        """The simulated rate of the run, as a multiple of its own."""
        return self.rate(found, found.of(self._run.setting)) / self._run.batches_per_s


def costlier(demands: Sequence[Demand], times: float) -> tuple[Demand, ...]:
    return tuple(
        replace(
            each, latency_s=times * each.latency_s, link_bytes=times * each.link_bytes,
            cpu_s=times * each.cpu_s, send_s=times * each.send_s, receive_s=times * each.receive_s,
        )
        for each in demands
    )  # fmt: skip


def _inline(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    return tuple(
        Demand(latency_s=each.link_bytes, cpu_s=each.cpu_s, step_cpu_s=each.step_cpu_s)
        for each in demands
    )


def _blocked(columns: Columns, cpu_s: Floats) -> Floats:
    """What making each batch took beside its CPU time, less the share in which, of the batches
    that were sampled, a core was waited for."""
    rest_s = columns.made_s - columns.cpu_s
    seen = ~np.isnan(rest_s) & ~np.isnan(columns.runqueue_s)
    waited_s, in_all_s = columns.runqueue_s[seen].sum(), rest_s[seen].sum()
    share = min(1.0, float(waited_s / in_all_s)) if in_all_s > 0 else 0.0
    blocked: Floats = np.maximum(0.0, columns.made_s - cpu_s) * (1 - share)
    return blocked
