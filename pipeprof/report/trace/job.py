"""Write the steps of a job's ranks as a Chrome trace, with a track for each rank.

The clocks of hosts differ. A step ends for all ranks at the same moment, so each rank is moved to
where its steps end together with those of the first one.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import orjson

from pipeprof.errors import UsageError
from pipeprof.model import BatchLog, Profile
from pipeprof.report.trace.chrome import Event

MOST_RANKS = 64
"""More tracks than these are no picture any more."""


def render_job_trace(profiles: Sequence[Profile], compressed: bool) -> bytes:
    """Return the bytes of the file.

    Args:
        profiles: One of the same loader for each rank.
        compressed: Whether the file is compressed by gzip.

    Raises:
        UsageError: They have no step in common.
    """
    moments = [_ends(profile) for profile in profiles]
    common = set(moments[0]).intersection(*moments[1:])
    if not common:
        raise UsageError("the ranks have no recorded step in common, so there is nothing to trace.")
    zero_s = min(profiles[0].batches.asked_s)
    events: list[Event] = []
    for track, (profile, own) in enumerate(zip(profiles, moments, strict=True), 1):
        behind_s = median(own[step] - moments[0][step] for step in common)
        name = f"rank {profile.environment.rank}, {profile.environment.host or 'unknown host'}"
        events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": track,
                       "args": {"name": name}})  # fmt: skip
        events += _spans(profile.batches, track, zero_s + behind_s)
    data = orjson.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events})
    return gzip.compress(data, mtime=0) if compressed else data


def _ends(profile: Profile) -> Mapping[tuple[int, int], float]:
    """Return the end of each recorded step, by its epoch and number."""
    log = profile.batches
    return dict(zip(zip(log.epoch, log.nth, strict=True), log.done_s, strict=True))


def _spans(log: BatchLog, track: int, zero_s: float) -> Iterator[Event]:
    """Yield the wait, the step and the pause of each batch, in whole microseconds."""
    for place, index in enumerate(log.index):
        pause_s = (log.pause_s[place] if log.pause_s else None) or 0.0
        asked, delivered, paused, done = (
            round((at_s - zero_s) * 1e6)
            for at_s in (log.asked_s[place], log.delivered_s[place],
                         log.done_s[place] - pause_s, log.done_s[place])
        )  # fmt: skip
        for name, begin, end in (("wait", asked, delivered), ("step", delivered, paused),
                                 ("pause", paused, done)):  # fmt: skip
            if end > begin:
                yield {"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": track,
                       "ts": begin, "dur": end - begin, "args": {"batch": index}}  # fmt: skip
