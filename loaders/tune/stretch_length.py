"""How long a stretch is measured: until its rate is known, or a trial costs too much."""

from __future__ import annotations

from pipeprof.loaders.tune.search import Search
from pipeprof.loaders.tune.stretch_clock import LEAST_BATCHES, LEAST_S, StretchClock

_LONGEST_S = 10.0
_LEAST_SHARE, _MOST_SHARE = 0.002, 0.03
"""A stretch takes at least the first share of an epoch, and up to the second where its batches vary
much; in neither case more than so many seconds."""
_SURE = 0.035
"""A stretch is long enough for certain once its rate is known so well: two of them then differ by
no more than the machine does (`search._PAIR_NOISE`)."""
_LOOK_EVERY = 8
"""How many batches lie between two looks at how much they vary."""


def least_s(search: Search, epoch_batches: int | None) -> float:
    """Return how many seconds a stretch takes at least, where an epoch has ``epoch_batches``."""
    last = search.last
    if last is None or epoch_batches is None:
        return LEAST_S
    epoch_s = epoch_batches / last.fed.batches_per_s
    return min(_LONGEST_S, max(LEAST_S, _LEAST_SHARE * epoch_s))


def is_enough(clock: StretchClock, search: Search, epoch_batches: int | None) -> bool:
    """Return whether the stretch that ``clock`` times, of at least a batch, is long enough."""
    slower_s = _slower_s(clock, search)
    if slower_s > search.budget_left_s:
        return True
    return clock.long_enough and (slower_s > 0 or _is_known(clock, epoch_batches))


def _slower_s(clock: StretchClock, search: Search) -> float:
    """Return how many seconds a trial has lost so far against the present setting."""
    last = search.last
    if clock.setting == search.current or last is None:
        return 0.0
    batches = clock.batches + clock.switching
    return clock.seconds + clock.switching_s - batches / last.fed.batches_per_s


def _is_known(clock: StretchClock, epoch_batches: int | None) -> bool:
    """Return whether the rate is known well enough."""
    batches = clock.batches
    epoch_s = (epoch_batches or batches) * clock.seconds / batches
    if clock.seconds >= min(_LONGEST_S, _MOST_SHARE * epoch_s):
        return True
    return (batches - LEAST_BATCHES) % _LOOK_EVERY == 0 and clock.rate_error() <= _SURE
