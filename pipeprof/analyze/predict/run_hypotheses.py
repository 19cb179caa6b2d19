"""List what one run leaves open, as hypotheses: calibrations that are each fitted to the run.

A run shows what its batches took, but not what more workers would share. Cores that were not all
busy may slow each other down. Without workers, the transfer from one is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, log

import numpy as np

from pipeprof.analyze.predict.batch_costs import BatchCosts, cpu_of, pinning_of
from pipeprof.analyze.predict.calibrate import Calibration, may_share_storage
from pipeprof.analyze.predict.dataloader_sim import simulate_steady
from pipeprof.analyze.predict.predict import BATCHES
from pipeprof.analyze.predict.receive_fit import fit_receiving
from pipeprof.analyze.predict.transfer_fit import TransferModel
from pipeprof.analyze.predict.workload import Demand, Link, Machine, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.thresholds import (
    DRIFT_OF_COMPUTING,
    DRIFT_OF_WAITING,
    LEAST_BATCHES_TO_SIMULATE,
    MINOR_SHARE,
)

_LEAST_CONTENTION_FACTOR = 0.8
"""Least speed of a core when all are busy, relative to one that is busy alone."""
_JITTER = 0.1
"""Relative spread that is added to batches. Equal ones would synchronise and all want a core at the
same time, which real ones hardly do."""
_ALL_BUSY = 0.9
"""Share of the time with all cores busy, above which measured CPU times include their slowdown."""
_NO_TRANSFER_YET = ((1.0, 1.0), (4.0, 1.4))
"""Where no worker has sent a batch yet: possible durations of a transfer relative to the least, and
of providing its memory, relative to a test with one process."""
_LONG_TRANSFER = 3.0
"""Duration relative to the least, beyond which main may have waited for the worker's
interpreter."""
_BLOCKING_SHARE = 0.5
"""Share of the fetch time that workers compute. With less they leave their interpreters to
others."""
_ITERATIONS = 3
_MOST_SCALE = 2.0
"""Largest factor, up or down, by which the costs of batches are fitted."""
_REMAINING_ERROR = 0.5
"""Share of the fitted error that another setting may still have."""


@dataclass(frozen=True)
class RunContext:
    """Facts about a run that its batches do not show."""

    cores: float
    """Cores available to this training alone."""
    main_cpu_s: float = 0.0
    """CPU time of the training process per batch, without fetching or receiving it."""
    least_transfer_s: float = 0.0
    """Least time that main spends on receiving a batch."""
    sharing_s: float = 0.0
    """CPU time per batch that a worker takes longer than main, which needs no shared memory."""
    release_s: float = 0.0
    """CPU time per batch that main takes longer for its step, which returns that memory."""
    room_for_more: bool = False
    """Whether more workers certainly find room on what they wait for."""


class RunHypotheses:
    """The possible calibrations of a run, each fitted to it."""

    def __init__(self, run: Measured, context: RunContext) -> None:
        self._run, self._context = run, context
        columns = run.columns
        self._step_cpu_s = min(float(columns.step_s.mean()), max(0.0, context.main_cpu_s))
        self._cpu_s = cpu_of(columns)
        self._computing_share = float(self._cpu_s.sum() / columns.made_s.sum())
        self._blocked_s = _blocked_s(columns, self._cpu_s)
        waits = self._blocked_s.sum() > MINOR_SHARE * columns.made_s.sum()
        self.shares = bool(waits) and not context.room_for_more and may_share_storage(columns)
        """Whether what workers wait for may have no room for more of them."""
        self.every = tuple(map(self._fitted, self._unfitted()))
        """At least one hypothesis."""

    def step_s(self, setting: Setting) -> Floats:
        """Return the training steps with ``setting``, without main's CPU time in them. [batches]"""
        step_s: Floats = np.maximum(0.0, self._run.step_s(setting) - self._step_cpu_s)
        return step_s + (self._context.release_s if setting.num_workers else 0.0)

    def rate(self, hypothesis: Calibration, demands: Sequence[Demand]) -> float:
        """Return the simulated batches/s of ``demands`` in the run's setting. They are repeated
        where they are too few."""
        setting = self._run.setting
        enough = setting.unsteady + LEAST_BATCHES_TO_SIMULATE
        repeats = -(-enough // len(demands)) if len(demands) < enough else 1
        run = simulate_steady(
            [*demands] * repeats, self.step_s(setting), setting, hypothesis.machine
        )
        return run.batches_per_s

    def _unfitted(self) -> Iterator[Calibration]:
        """Yield the hypotheses, not yet fitted to the run."""
        run, context, computing = self._run, self._context, self._computing_share
        cpu_s, blocked_s = self._cpu_s, self._blocked_s
        most_workers = max(1, run.setting.num_workers) if self.shares else inf
        busy = cpu_s.sum() / run.seconds + self._step_cpu_s * run.batches_per_s
        all_busy = min(1.0, max(0.0, busy - (context.cores - 1)))
        jitter = np.random.default_rng(0).lognormal(0.0, _JITTER, len(cpu_s))
        jitter /= jitter.mean()
        may_slow_down = computing > MINOR_SHARE and all_busy < _ALL_BUSY
        for factor in (1.0, _LEAST_CONTENTION_FACTOR) if may_slow_down else (1.0,):
            alone = 1 - all_busy * (1 - factor)  # measured CPU times include the contention
            for transfer, memory in self._transfers():
                costs = BatchCosts(cpu_s * jitter * alone, blocked_s * jitter, pinning_of(run))
                inline, receiving = costs.demands(transfer), transfer.receive_s * run.batches_per_s
                more_s = memory * context.sharing_s
                demands = [replace(each, cpu_s=each.cpu_s + more_s) for each in inline]
                noise = hypot(DRIFT_OF_WAITING, DRIFT_OF_COMPUTING * max(computing, receiving))
                yield Calibration(
                    demands=tuple(demands), inline=_inline(inline),
                    machine=Machine(context.cores, factor, Link(each=1.0)),
                    concurrent_waits=inf, most_workers=most_workers,
                    disagreement=0.0, noise=noise,
                )  # fmt: skip

    def _transfers(self) -> Iterator[tuple[Demand, float]]:
        """Yield the possible transfers of a batch from its worker to main, and how many times the
        CPU time of a test its memory takes."""
        run, least_s = self._run, self._context.least_transfer_s
        if not run.setting.num_workers:
            for scale, memory in _NO_TRANSFER_YET:
                yield Demand(
                    send_s=scale * least_s / 2, receive_s=scale * least_s,
                    step_cpu_s=self._step_cpu_s,
                ), memory  # fmt: skip
            return
        transfer, most_s = TransferModel([run], []), _LONG_TRANSFER * least_s
        if not transfer.always_concurrent or transfer.demand.receive_s <= most_s:
            yield self._received(transfer.demand), 1.0
            return
        # main computed for so long, or waited for the interpreter of a worker that computes
        clocked_s = run.columns.unpickled_cpu_s
        computed_s = None if np.isnan(clocked_s).all() else float(np.nanmedian(clocked_s))
        if computed_s is None or self._computing_share < _BLOCKING_SHARE:
            yield self._received(transfer.demand), 1.0
        most_s = max(most_s, _LONG_TRANSFER * (computed_s or 0.0))
        yield self._received(TransferModel([run], [], most_s).demand), 1.0

    def _received(self, transfer: Demand) -> Demand:
        """Return ``transfer`` with main's own parts."""
        return replace(transfer, step_cpu_s=self._step_cpu_s)

    def _fitted(self, hypothesis: Calibration) -> Calibration:
        """Scale the costs of batches so that the simulation repeats the run."""
        sent = not np.isnan(self._run.columns.sent_s).all()
        if self._run.setting.num_workers and sent:
            hypothesis = replace(hypothesis, demands=self._with_delays(hypothesis))
        scale, fitted = 1.0, hypothesis
        ratio = self._rate_ratio(hypothesis)
        for _ in range(_ITERATIONS):
            scale = min(_MOST_SCALE, max(1 / _MOST_SCALE, scale * ratio))
            fitted = replace(
                hypothesis,
                demands=scaled_costs(hypothesis.demands, scale),
                inline=scaled_costs(hypothesis.inline, scale),
            )
            ratio = self._rate_ratio(fitted)
        return replace(fitted, disagreement=hypot(_REMAINING_ERROR * log(scale), ratio - 1))

    def _with_delays(self, hypothesis: Calibration) -> tuple[Demand, ...]:
        """Return the demands with which batches are received as late as they were."""
        demands = hypothesis.demands[:BATCHES]
        like = fit_receiving(demands, hypothesis.machine, [self._run])[0]
        return tuple(
            replace(
                each, late_s=like.late_s,
                receive_s=like.receive_s, receive_blocked_s=like.receive_blocked_s,
            )
            for each in hypothesis.demands
        )  # fmt: skip

    def _rate_ratio(self, hypothesis: Calibration) -> float:
        """Return the simulated rate of the run over its measured rate."""
        return self.rate(hypothesis, hypothesis.of(self._run.setting)) / self._run.batches_per_s


def scaled_costs(demands: Sequence[Demand], scale: float) -> tuple[Demand, ...]:
    """Return ``demands`` with all costs but those of the training step multiplied by ``scale``."""
    return tuple(
        replace(
            each, latency_s=scale * each.latency_s, link_bytes=scale * each.link_bytes,
            cpu_s=scale * each.cpu_s, send_s=scale * each.send_s, receive_s=scale * each.receive_s,
            pin_s=scale * each.pin_s, take_s=scale * each.take_s,
        )
        for each in demands
    )  # fmt: skip


def _inline(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """Return ``demands`` as they are when main fetches the batches itself."""
    return tuple(
        Demand(latency_s=each.link_bytes + each.pin_s, cpu_s=each.cpu_s, step_cpu_s=each.step_cpu_s)
        for each in demands
    )


def _blocked_s(columns: Columns, cpu_s: Floats) -> Floats:
    """Return the seconds of each fetch that are neither CPU time nor waiting for a core. The share
    of these waits is taken from the batches in which they were sampled. [batches]"""
    rest_s = columns.made_s - columns.cpu_s
    sampled = ~np.isnan(rest_s) & ~np.isnan(columns.runqueue_s)
    core_wait_s, total_s = columns.runqueue_s[sampled].sum(), rest_s[sampled].sum()
    share = min(1.0, float(core_wait_s / total_s)) if total_s > 0 else 0.0
    blocked_s: Floats = np.maximum(0.0, columns.made_s - cpu_s) * (1 - share)
    return blocked_s
