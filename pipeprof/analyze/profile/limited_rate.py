"""Recognise waits for something whose total rate is limited: a full disk or link, or a quota.

Time saved elsewhere is then lost in waiting, and only asking for less helps. One run shows it in
three cases where the waits vary:

- Workers wait longer, the more of them wait concurrently.
- A single worker waits less after it was busy with something else, as its quota grew meanwhile.
- A quota is refilled at intervals, as Linux does for a container ten times a second. Long waits,
  for no more bytes than others, then end at even intervals.

Other waits, such as those for a server's answer, do none of that. Where nothing varies, nothing is
concluded.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask
from pipeprof.analyze.profile.intervals import fit_line
from pipeprof.analyze.thresholds import MOSTLY
from pipeprof.model import Stage

_LEAST_BATCHES = 40
"""Fewest batches to conclude anything from."""
_LEAST_EXPONENT, _LEAST_ERRORS = 0.7, 4.0
"""Least exponent with which waits grow with the number of waiting workers, and its distance from 0
in standard errors. The exponent is 1 where the workers share one rate."""
_LEAST_VARIATION = 0.05
"""Least relative deviation of the number of waiting workers."""
_MOST_SLOPE, _MOST_CORRELATION = -0.2, -0.4
"""Largest slope and correlation of waiting over other work. The slope is 0 where the two are
independent, and -1 where waiting shrinks by all of the other work."""
_LEAST_REFILLS = 8
"""Fewest refills of a quota."""
_LONG_WAIT = 4.0
"""Shortest wait for a refill, in lower quartiles of all waits: a refill may last for two batches.
"""
_MOST_BYTES = 1.25
"""Most bytes of batches that waited for a refill, in means of all batches. With more, they waited
for these bytes, as for a row group."""
_MOST_UNEVEN = 0.1
"""Largest spread of the intervals between refills, in their medians. It is 0.01 to 0.05 on a
throttled disk, and 0.25 or more where waits have a long tail."""
_SAME_REFILL = 0.3
"""Share of a wait for a refill. Waits of several workers that end within it are for the same one.
"""


def limited_stage(columns: Columns) -> str | None:
    """Return the stage whose rate is limited: ``read`` where reading was clocked, else ``fetch``.

    Return ``None`` where the run does not show a limit. ``columns`` are those of the steady state.
    """
    columns = _as_fetched(columns)
    if len(columns) < _LEAST_BATCHES:
        return None
    stage, seconds = _stage_seconds(columns)
    if not _waiting_share(columns, seconds, clocked=stage is Stage.READ) >= MOSTLY:
        return None
    single = len(np.unique(columns.worker)) == 1
    limited = (_shrinks_after_work if single else _grows_with_workers)(columns, seconds)
    return str(stage) if limited or _ends_at_even_intervals(columns, seconds) else None


def saves_up(columns: Columns) -> bool:
    """Whether a single worker waits less after other work, as its storage saves up meanwhile what
    it could have served. ``columns`` are those of the steady state."""
    columns = _as_fetched(columns)
    if limited_stage(columns) is None or len(np.unique(columns.worker)) > 1:
        return False
    return _shrinks_after_work(columns, _stage_seconds(columns)[1])


def _as_fetched(columns: Columns) -> Columns:
    """Return the batches whose fetch was recorded, in the order in which these began."""
    columns = columns.take(np.isfinite(columns.made_s))
    return columns.at(np.argsort(columns.fetch_start_s, kind="stable"))


def _stage_seconds(columns: Columns) -> tuple[Stage, Floats]:
    """Return the stage in which storage is waited for, and its seconds. [batches]"""
    if np.nansum(columns.read_s) > 0:
        return Stage.READ, np.nan_to_num(columns.read_s)
    parts = (columns.collate_s, columns.decode_s, columns.transform_s)
    return Stage.FETCH, columns.made_s - sum(np.nan_to_num(part) for part in parts)


def _waiting_share(columns: Columns, seconds: Floats, clocked: bool) -> float:
    """Return the share of the stage that is neither computing nor waiting for a core, 0..1, of the
    sampled batches; NaN unknown.

    The CPU time of reads that a black box does itself is unknown. What its whole fetch waited for
    is taken for them then, as far as they are long enough.
    """
    cpu_s = columns.read_cpu_s
    if clocked and not np.isfinite(cpu_s).any():
        waited_s = columns.made_s - columns.cpu_s - columns.runqueue_s
        cpu_s = seconds - np.clip(waited_s, 0.0, seconds)
    elif not clocked:
        elsewhere = (columns.collate_cpu_s, columns.decode_cpu_s, columns.transform_cpu_s)
        cpu_s = columns.cpu_s + columns.runqueue_s - sum(map(np.nan_to_num, elsewhere))
    sampled = np.isfinite(cpu_s)
    total_s = seconds[sampled].sum()
    return float(1 - cpu_s[sampled].sum() / total_s) if total_s > 0 else float("nan")


def _grows_with_workers(columns: Columns, seconds: Floats) -> bool:
    """Whether waits grow with the number of workers that wait."""
    concurrent = _concurrent_fetches(columns.fetch_start_s, columns.fetch_end_s)
    known = (seconds > 0) & (concurrent > 0)
    concurrent, seconds = concurrent[known], seconds[known]
    if len(seconds) < _LEAST_BATCHES:
        return False
    if not concurrent.std() > _LEAST_VARIATION * concurrent.mean():
        return False
    slope, correlation = fit_line(np.log(concurrent), np.log(seconds))
    unexplained = max(1e-12, 1 - correlation**2)
    errors = correlation * ((len(seconds) - 2) / unexplained) ** 0.5
    return slope >= _LEAST_EXPONENT and errors >= _LEAST_ERRORS


def _concurrent_fetches(start: Floats, end: Floats) -> Floats:
    """Return the mean number of batches that were fetched during the fetch of each. [batches]"""
    moments = np.sort(np.concatenate([start, end]))
    started = np.searchsorted(np.sort(start), moments, side="right")
    current = started - np.searchsorted(np.sort(end), moments, side="right")
    passed = np.concatenate([[0.0], np.cumsum(np.diff(moments) * current[:-1])])
    within: Floats = np.interp(end, moments, passed) - np.interp(start, moments, passed)
    return within / np.maximum(end - start, 1e-12)


def _shrinks_after_work(columns: Columns, seconds: Floats) -> bool:
    """Whether a single worker waits less after it was busy with something else."""
    other_s = columns.fetch_start_s[1:] - columns.fetch_end_s[:-1]
    other_s = other_s + (columns.made_s - seconds)[:-1]
    usual = other_s < np.percentile(other_s, 99)  # pauses and new epochs would dominate the line
    if usual.sum() < _LEAST_BATCHES or not other_s[usual].std() > 0:
        return False
    slope, correlation = fit_line(other_s[usual], seconds[1:][usual])
    return slope <= _MOST_SLOPE and correlation <= _MOST_CORRELATION


def _ends_at_even_intervals(columns: Columns, seconds: Floats) -> bool:
    """Whether most of the waiting is in long waits that end at even intervals."""
    long = seconds > _LONG_WAIT * np.percentile(seconds, 25)
    if not _reads_no_more(columns, long):
        return False
    ends = np.sort(columns.fetch_end_s[long])
    separate = np.diff(ends, prepend=-np.inf) > _SAME_REFILL * seconds[long].mean()
    between_s = np.diff(ends[separate])
    if seconds[long].sum() < MOSTLY * seconds.sum() or len(between_s) < _LEAST_REFILLS - 1:
        return False
    lower, middle, upper = np.percentile(between_s, (25, 50, 75))  # a refill may be shared out
    return bool(upper - lower <= _MOST_UNEVEN * middle)


def _reads_no_more(columns: Columns, long: Mask) -> bool:
    """Whether the ``long`` batches read no more than others: by the bytes that the data set
    counted, else by those that its process read from files during the sampled batches."""
    counted = (columns.bytes > 0).any()
    size = columns.bytes if counted else columns.logical_bytes
    known = np.isfinite(size)
    if not (known & long).any() or not (size[known] > 0).all():
        return False
    return bool(size[known & long].mean() <= _MOST_BYTES * size[known].mean())
