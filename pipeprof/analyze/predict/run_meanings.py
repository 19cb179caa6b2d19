"""What one run may mean: calibrations that differ in what it leaves open, each fitted to it.

A run shows what its batches took, but not what more workers would share: whether cores slow each
other down that were not all busy, and, without workers, what the transfer from one takes.
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
"""What runs in the same setting differ by, relatively, where their workers wait and where they
compute: one run cannot show it. `benchmarks.prediction` prints it as noise."""
_CROWDED = 0.8
"""The least speed of a core when all are busy, of that of one alone."""
_JITTER = 0.1
"""Relative spread that is added to batches. Equal ones would fall into step and all want a core at
the same time, which real ones hardly do."""
_ALL_BUSY = 0.9
"""Share of the time with all cores busy, above which measured CPU times include their slowdown."""
_MATTERS = 0.1
"""Share of a batch's fetch time. Less CPU time does not crowd the cores, and less waiting fills no
storage."""
_TRAVELS = (1.0, 4.0)
"""Multiples of the least that a transfer takes, where no worker has sent a batch yet."""
_LONG = 3.0
"""Multiple of that least, beyond which main may have waited for the worker's interpreter."""
_COMPUTES = 0.5
"""Share of a batch's fetch time. Workers that compute less leave their interpreters to others."""
_FITS = 3
_MOST = 2.0
"""The largest factor, either up or down, by which the costs of batches are fitted."""
_KEPT = 0.5
"""Share of the error that was fitted away, which another setting may still have."""


@dataclass(frozen=True)
class Circumstances:
    """What else must be known of a run besides its batches."""

    cores: float
    """Available to this training alone."""
    main_cpu_s: float = 0.0
    """CPU time of the training process for a batch, without fetching or receiving it."""
    travel_s: float = 0.0
    """The least that main spends on receiving a batch."""
    pinned: bool = False
    """Whether a thread of its own receives batches, and pins them."""
    alone: bool = False
    """Whether more workers are certain to find room on what they wait for."""


class RunMeanings:
    """All that the run may mean, fitted."""

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
        """Whether more workers may find no room on what they wait for."""
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
        """What the run may mean, not yet fitted."""
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
        """What the transfer of a batch from its worker to main may take."""
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
        # main computed for so long, or waited for the interpreter of a worker that computes
        clocked_s = run.columns.unpickled_cpu_s
        computed_s = None if np.isnan(clocked_s).all() else float(np.nanmedian(clocked_s))
        if computed_s is None or self._computing < _COMPUTES:
            yield self._received(transfer.demand)
        yield self._received(
            TransferModel([run], [], max(most_s, _LONG * (computed_s or 0.0))).demand
        )

    def _received(self, transfer: Demand) -> Demand:
        """The same for main: a thread that pins also receives, while main trains."""
        columns = self._run.columns
        transfer = replace(transfer, step_cpu_s=self._step_cpu_s)
        if not self._known.pinned or np.isnan(columns.pinned_s).all():
            return transfer
        taken_s = np.nanmedian(columns.delivered_s - np.fmax(columns.asked_s, columns.pinned_s))
        return replace(transfer, receive_s=float(taken_s), receive_held_s=0.0)

    def _fitted(self, found: Calibration) -> Calibration:
        """With the costs of batches multiplied so that the simulation repeats the run."""
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
        """Its demands, with main receiving batches as late as it did."""
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
    """What each fetch took besides its CPU time, without the share in which it waited for a core.
    That share is of the batches that were sampled. [batches], seconds"""
    rest_s = columns.made_s - columns.cpu_s
    seen = ~np.isnan(rest_s) & ~np.isnan(columns.runqueue_s)
    waited_s, in_all_s = columns.runqueue_s[seen].sum(), rest_s[seen].sum()
    share = min(1.0, float(waited_s / in_all_s)) if in_all_s > 0 else 0.0
    blocked: Floats = np.maximum(0.0, columns.made_s - cpu_s) * (1 - share)
    return blocked
