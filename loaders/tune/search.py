"""Which setting to measure next, and which to keep: the search, without a loader or a clock.

The search is a generator. It yields `Measure`, and is sent what a stretch of training with that
setting measured; or `Propose`, and is sent what may be faster. So training and tests run the same
code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from math import exp, hypot, isnan, log, nan, sqrt

import numpy as np

from pipeprof.analyze.profile.intervals import student_t
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import Fed, TriedSetting, TunedSetting, TuningState

NORMAL_95 = 1.96
_PAIR_NOISE = 0.05
"""Standard deviation of the log ratio of two adjacent stretches of one setting, until more pairs
show it. More is assumed where the batches of a stretch, or the pairs, deviate more."""
_SHOW_NOISE, _LEAST_NOISE = 4, 0.02
"""So many pairs show their deviation themselves. It is hardly less than this, as they may agree by
chance."""
_MOST_PAIRS = 20
_WORTH_KEEPING = 0.01
"""Least gain of a setting that is kept. One below `EQUALLY_FAST` must be clear."""
_HARDLY = 0.25
"""A loop that waits for a loader less than this share of what it waits for others waits for those.
What remains is the hand-over."""
_AT_RISK = 0.3
"""Share of the budget that may be lost before anything faster was found. What was found pays for
the rest."""
_CLEAR = (3.0, 2.0, 1.5)
"""After one, two and more pairs: a gain is clear if it is so many times the half-width of its
interval. To look after each pair would otherwise find a gain by chance."""


@dataclass(frozen=True)
class MeasuredStretch:
    """Consecutive batches of training that one setting fed."""

    setting: TunedSetting
    batches: int
    seconds: float
    waited_s: float
    """Of ``seconds``, what the training loop waited for batches."""
    switching: int = 0
    """Batches that were delivered before, while its workers started and filled their buffers."""
    switching_s: float = 0.0
    """The seconds of these batches."""
    trained_s: float = 0.0
    """The seconds from the first batch of training to the last one of the stretch."""
    rate_error: float = 0.0
    """Standard error of `batches_per_s_alone`, as a share of it."""
    others_s: float = 0.0
    """Of ``seconds``, what the training loop waited for other tuned loaders."""
    made_every_s: float = nan
    """In which its workers make a batch; NaN where that is unknown."""
    error: str | None = None
    """Why the setting failed; then nothing was measured."""

    @property
    def fed(self) -> Fed:
        shares = self.waited_s / self.seconds, self.others_s / self.seconds
        return Fed(self.batches / self.seconds, *shares)

    @property
    def batches_per_s_alone(self) -> float:
        """The rate if the batches of other loaders lay ready. Of two loaders that are equally fast,
        the loop waits for the one that happens to be later, so the waits do not show it."""
        if not self.others_s or not self.setting.num_workers or isnan(self.made_every_s):
            return self.batches / (self.seconds - self.others_s)
        step_s = (self.seconds - self.waited_s - self.others_s) / self.batches
        return 1 / max(step_s, self.made_every_s)


@dataclass(frozen=True)
class Candidate:
    """A setting that may be faster."""

    setting: TunedSetting
    batches_per_s: float | None = None
    """Predicted; ``None`` where nothing is."""
    against: float | None = None
    """What the present setting gave, in batches/s, in the batches that the prediction is from;
    ``None``: as in its last stretch."""
    explores: bool = False
    """Whether it is tried also where it is predicted to be only as fast."""
    is_users_choice: bool = False
    """Whether only the user can choose it, so that it is not tried."""

    def gain(self, own: MeasuredStretch) -> float | None:
        """Return the predicted rate as a multiple of that of the present setting. The machine may
        have become faster or slower since, which says nothing of a setting."""
        return self.batches_per_s and self.batches_per_s / (self.against or own.fed.batches_per_s)


@dataclass(frozen=True)
class Measure:
    """Asks for a stretch with ``setting``."""

    setting: TunedSetting


@dataclass(frozen=True)
class Propose:
    """Asks for what may be faster than ``setting``, which was measured last."""

    setting: TunedSetting


Step = Measure | Propose
Answer = MeasuredStretch | Sequence[Candidate]
"""To `Measure` or to `Propose`; the most promising candidate comes first."""


@dataclass
class Search:
    """The state of a search, readable while it runs."""

    current: TunedSetting
    budget_s: Callable[[], float]
    """Seconds that trials may lose by now, also where the search is repeated."""
    threshold: float = 0.05
    """The starved fraction below which nothing needs to change."""
    attempts: list[TriedSetting] = field(default_factory=list)
    lost_s: float = 0.0
    first: MeasuredStretch | None = None
    """The user's own setting as measured first."""
    last: MeasuredStretch | None = None
    """The present setting as measured last."""
    state: TuningState = "searching"
    _speedup: float = 1.0
    """Of the present setting, against the first one."""
    _gained_s: float = 0.0
    """What that saved in the stretches of the present setting."""

    @property
    def budget_left_s(self) -> float:
        budget_s = self.budget_s()
        allowed_s = min(budget_s, _AT_RISK * budget_s + self._gained_s)
        return allowed_s - self.lost_s

    def run(self) -> Generator[Step, Answer, None]:
        """Ask for measurements, until the present setting feeds the accelerator, nothing else is
        expected to be faster, or the budget is spent."""
        self.state = "searching"
        own = yield from self._measured_current()
        self.first, self.last = self.first or own, own
        tried, trust = {self.current}, 1.0
        proposed: Sequence[Candidate] | None = None
        while own.fed.starved_fraction > self.threshold:
            if proposed is None:
                proposed = yield from _proposed(self.current)
            left = [
                each
                for each in proposed
                if each.setting not in tried and _is_promising(each, own, trust)
            ]
            if not left or self.budget_left_s <= 0:
                self.state = "best" if all(each.explores for each in left) else "budget"
                return
            tried.add(left[0].setting)
            attempt = yield from self._try(left[0], own)
            self.attempts.append(attempt)
            if attempt.kept:
                self.current, proposed = attempt.setting, None
                self._speedup *= attempt.ratio or 1.0
            elif attempt.interval and attempt.predicted:
                # what was predicted too fast once is likely to be so again
                trust = min(trust, attempt.interval[1] / attempt.predicted)
            own = yield from self._measured_current()
            self.lost_s += max(0.0, own.switching_s - own.switching / own.fed.batches_per_s)
            self.last = own
        self.state = "fed"

    def _measured_current(self) -> Generator[Step, Answer, MeasuredStretch]:
        own = yield from _measured(self.current)
        self._gained_s += own.seconds * (self._speedup - 1)
        return own

    def _try(
        self, candidate: Candidate, own: MeasuredStretch
    ) -> Generator[Step, Answer, TriedSetting]:
        """Pairs of stretches, A B B A A B …, until they decide."""
        setting, pairs, lost_before_s = candidate.setting, _Pairs(), self.lost_s
        own = replace(own, switching=0, switching_s=0.0)  # counted already
        predicted = candidate.gain(own)
        for pair in range(_MOST_PAIRS):
            if pair % 2:
                other = yield from _measured(setting)
                own = yield from self._measured_current()
            else:
                own = own if not pair else (yield from self._measured_current())
                other = yield from _measured(setting)
            if other.error is not None:
                return TriedSetting(setting, self.current, predicted=predicted, error=other.error)
            pairs.add(other, own)
            self.lost_s = lost_before_s + pairs.lost_s
            mean, half = pairs.mean_and_half()
            clear = half * _CLEAR[min(pair, len(_CLEAR) - 1)]
            useless = mean + half < log(1 + EQUALLY_FAST) or pairs.slow_others_down
            enough = mean > clear and (pair + 1 >= _SHOW_NOISE or not pairs.only_others_awaited)
            if enough or useless or self.budget_left_s <= 0:
                break
        beyond_noise = mean > (clear if mean < log(1 + EQUALLY_FAST) else half)
        kept = beyond_noise and mean > log(1 + _WORTH_KEEPING) and not pairs.slow_others_down
        self.last = other if kept else own
        return TriedSetting(
            setting, self.current, exp(mean), (exp(mean - half), exp(mean + half)), predicted,
            len(pairs.logs), kept, with_others=pairs.with_others,
        )  # fmt: skip


def _is_promising(candidate: Candidate, own: MeasuredStretch, trust: float) -> bool:
    """``trust``: the factor by which predictions are reduced."""
    gain = candidate.gain(own)
    if gain is None:
        return True
    return gain >= 1 - EQUALLY_FAST if candidate.explores else trust * gain >= 1 + EQUALLY_FAST


def _measured(setting: TunedSetting) -> Generator[Step, Answer, MeasuredStretch]:
    answer = yield Measure(setting)
    assert isinstance(answer, MeasuredStretch)
    return answer


def _proposed(setting: TunedSetting) -> Generator[Step, Answer, Sequence[Candidate]]:
    answer = yield Propose(setting)
    assert not isinstance(answer, MeasuredStretch)
    return answer


class _Pairs:
    """Pairs of stretches: of another setting, and of the present one."""

    def __init__(self) -> None:
        self.logs: list[float] = []
        """Log ratios of their rates; if the batches of other loaders lay ready, where the loop
        waits only for those with the other setting. Their searches then make them faster."""
        self._loops_logs: list[float] = []
        """Log ratios of the loop's rates."""
        self.only_others_awaited = False
        """Whether the loop waited only for other loaders in any stretch of the other setting."""
        self._noise = _PAIR_NOISE
        """Least standard deviation of a log ratio."""
        self._own, self._other, self._switching = np.zeros(2), np.zeros(2), np.zeros(2)
        """Batches and seconds; those of switching are in neither of the others."""

    def add(self, other: MeasuredStretch, own: MeasuredStretch) -> None:
        loops_log = log(other.fed.batches_per_s / own.fed.batches_per_s)
        alone = other.waited_s < _HARDLY * other.others_s
        self.only_others_awaited |= alone
        self._loops_logs.append(loops_log)
        self.logs.append(
            log(other.batches_per_s_alone / own.batches_per_s_alone) if alone else loops_log
        )
        self._noise = max(self._noise, hypot(own.rate_error, other.rate_error))
        for sums, each in ((self._own, own), (self._other, other)):
            sums += (each.batches, each.seconds)
            self._switching += (each.switching, each.switching_s)

    @property
    def lost_s(self) -> float:
        """Seconds that the batches of switching and of the other setting took beyond what the
        present one takes for as many. All stretches count together: those that are slower by chance
        make up for those that are faster."""
        (batches, own_s), (others, seconds) = self._own, self._other + self._switching
        return float(max(0.0, seconds - others * own_s / batches))

    @property
    def with_others(self) -> float | None:
        """The mean ratio of the loop's rates, where it waited for other loaders."""
        return exp(float(np.mean(self._loops_logs))) if self.only_others_awaited else None

    @property
    def slow_others_down(self) -> bool:
        """Whether the loop gets clearly slower, as loaders share the cores or the storage."""
        mean, half = self._mean_and_half(self._loops_logs)
        return self.only_others_awaited and mean + half < 0

    def mean_and_half(self) -> tuple[float, float]:
        """The mean of the log ratios, and half of its 95 % interval."""
        return self._mean_and_half(self.logs)

    def _mean_and_half(self, logs: Sequence[float]) -> tuple[float, float]:
        count = len(logs)
        deviation = float(np.std(logs, ddof=1)) if count > 1 else 0.0
        if count < _SHOW_NOISE:
            factor, noise = NORMAL_95, max(deviation, self._noise)
        else:
            factor, noise = student_t(count - 1), max(deviation, _LEAST_NOISE)
        return float(np.mean(logs)), factor * noise / sqrt(count)
