"""Whether batches wait for something that gives all of them together a limited rate: a disk or link
whose bandwidth is used up, or a quota.

Then time saved elsewhere is lost in waiting, and only asking for less helps. One run shows it in
three cases where waiting varies. Each worker waits the longer, the more of them wait at the same
time. A single worker waits less after it was busy with something else, as its quota grew meanwhile.
And where a quota is dealt out in lumps, as Linux does to a container ten times a second, long waits
for no more bytes than others end at even intervals. Other waits, such as a server's latency, do
none of that. Where nothing varies, nothing is concluded.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.profile.intervals import line
from pipeprof.model import Stage

_FEWEST = 40
"""The fewest batches to conclude anything from."""
_WAITS = 0.5
"""The least share of the stage that is neither computing nor waiting for a core."""
_GROWS, _SURE = 0.7, 4.0
"""Exponent with which waits grow with the number of workers that wait, 1 where they share one rate;
and by how many of its standard errors it must differ from 0."""
_VARIES = 0.05
"""The least relative deviation of the number of workers that wait."""
_MADE_UP, _TOGETHER = -0.2, -0.4
"""Seconds of waiting that a second of other work adds: 0 where the two are independent, -1 where
waiting shrinks by all of it. And the correlation of the two."""
_LUMPS, _LONG, _MOST, _MORE = 8, 4.0, 0.5, 1.25
"""The fewest lumps; what a wait for one takes at the least, in medians of all waits; the least
share of all waiting that is for lumps; and the most bytes of batches that waited for one, in means
of all batches: with more, they waited for these bytes, as for a row group."""
_EVEN = 0.1
"""The largest relative deviation of the intervals between lumps: it is 0.02 on a throttled disk,
and 0.25 or more where waits have a long tail."""
_AT_ONCE = 0.3
"""Share of a wait for a lump. Waits of several workers that end within it are for the same lump."""


def limited_stage(columns: Columns) -> str | None:
    """The stage whose rate is limited: ``read`` where reading was clocked, else ``fetch``; ``None``
    where the run does not show it. ``columns``: of the steady state."""
    columns = columns.take(np.isfinite(columns.made_s))
    if len(columns) < _FEWEST:
        return None
    named = bool(np.nansum(columns.read_s) > 0)
    stage = Stage.READ if named else Stage.FETCH
    parts = (columns.collate_s, columns.decode_s, columns.transform_s)
    fetch_s = columns.made_s - sum(np.nan_to_num(part) for part in parts)
    seconds = np.nan_to_num(columns.read_s) if named else fetch_s
    if not _waiting(columns, seconds, named) >= _WAITS:
        return None
    columns, seconds = _in_time(columns, seconds)
    alone = len(np.unique(columns.worker)) == 1
    limited = _made_up_for(columns, seconds) if alone else _grows(columns, seconds)
    return str(stage) if limited or _in_lumps(columns, seconds) else None


def _waiting(columns: Columns, seconds: Floats, named: bool) -> float:
    """Share of the stage that is waiting, 0..1, of the batches that were sampled; NaN unknown."""
    cpu_s = columns.read_cpu_s
    if not named:
        elsewhere = (columns.collate_cpu_s, columns.decode_cpu_s, columns.transform_cpu_s)
        cpu_s = columns.cpu_s + columns.runqueue_s - sum(map(np.nan_to_num, elsewhere))
    seen = np.isfinite(cpu_s)
    whole_s = seconds[seen].sum()
    return float(1 - cpu_s[seen].sum() / whole_s) if whole_s > 0 else float("nan")


def _in_time(columns: Columns, seconds: Floats) -> tuple[Columns, Floats]:
    order = np.argsort(columns.fetch_start_s, kind="stable")
    return columns.at(order), seconds[order]


def _grows(columns: Columns, seconds: Floats) -> bool:
    at_once = _at_once(columns.fetch_start_s, columns.fetch_end_s)
    known = (seconds > 0) & (at_once > 0)
    if known.sum() < _FEWEST or not at_once[known].std() > _VARIES * at_once[known].mean():
        return False
    slope, correlation = line(np.log(at_once[known]), np.log(seconds[known]))
    left = max(1e-12, 1 - correlation**2)
    sure = correlation * ((known.sum() - 2) / left) ** 0.5
    return slope >= _GROWS and sure >= _SURE


def _at_once(start: Floats, end: Floats) -> Floats:
    """Batches that were fetched during the fetch of each, on average."""
    moments = np.sort(np.concatenate([start, end]))
    under_way = np.searchsorted(np.sort(start), moments, side="right") - np.searchsorted(
        np.sort(end), moments, side="right"
    )
    passed = np.concatenate([[0.0], np.cumsum(np.diff(moments) * under_way[:-1])])
    within: Floats = np.interp(end, moments, passed) - np.interp(start, moments, passed)
    return within / np.maximum(end - start, 1e-12)


def _made_up_for(columns: Columns, seconds: Floats) -> bool:
    other_s = columns.fetch_start_s[1:] - columns.fetch_end_s[:-1]
    other_s = other_s + (columns.made_s - seconds)[:-1]
    usual = other_s < np.percentile(other_s, 99)  # a pause, or an epoch's begin, makes up for much
    if usual.sum() < _FEWEST or not other_s[usual].std() > 0:
        return False
    slope, correlation = line(other_s[usual], seconds[1:][usual])
    return slope <= _MADE_UP and correlation <= _TOGETHER


def _in_lumps(columns: Columns, seconds: Floats) -> bool:
    long, size = seconds > _LONG * np.median(seconds), columns.bytes
    if not long.any() or not (size > 0).all() or size[long].mean() > _MORE * size.mean():
        return False
    ends = np.sort(columns.fetch_end_s[long])
    apart = np.diff(ends, prepend=-np.inf) > _AT_ONCE * seconds[long].mean()
    between_s = np.diff(ends[apart])
    if seconds[long].sum() < _MOST * seconds.sum() or len(between_s) < _LUMPS - 1:
        return False
    return bool(between_s.std() <= _EVEN * between_s.mean())
