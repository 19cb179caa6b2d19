"""Measures how much of the cores other processes used. If it is much, timings say little."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from pipeprof.measure.host import idle_s

DISTURBING = 0.15
"""Share of all cores, 0..1, used by others above which a figure is not evaluated."""

_TICKS_A_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CoreClocks:
    """The clocks of one moment, in seconds."""

    now: float
    idle: float | None
    """Idle time summed over all cores; ``None`` if unknown."""
    ours: float
    """CPU time of this process and of all that it started, such as a server."""

    @staticmethod
    def read() -> CoreClocks:
        return CoreClocks(perf_counter(), idle_s(), _cpu_s_of(os.getpid()))

    def others_since(self, before: CoreClocks) -> float:
        """Return the share of all cores that others on this host used; 0 if it is unknown."""
        if self.idle is None or before.idle is None:
            return 0.0
        whole = (self.now - before.now) * (os.cpu_count() or 1)
        others = whole - (self.idle - before.idle) - (self.ours - before.ours)
        return min(1.0, max(0.0, others / whole))


def _cpu_s_of(root: int) -> float:
    """Return the CPU time of a process and its descendants, including those that have ended."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has just ended
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            ticks[int(path.parent.name)] = sum(map(int, fields[11:15]))
    return sum(ticks[pid] for pid in ticks if _is_below(pid, root, parents)) / _TICKS_A_S


def _is_below(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid != root and pid in parents:
        pid = parents[pid]
    return pid == root
