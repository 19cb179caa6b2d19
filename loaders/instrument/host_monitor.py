"""Read the resources that the training process uses: threads, descriptors, memory, CPU time."""

from __future__ import annotations

import threading
from math import inf, isnan, nan
from time import process_time
from typing import Any

import torch

from pipeprof.loaders.instrument.device_monitor import DeviceTotals
from pipeprof.measure import host
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.new_memory import new_memory
from pipeprof.measure.proc_counters import thread_waited_s
from pipeprof.model import LoaderConfig, MainProcess

_POLL_EVERY_S = 0.5
"""Fewest seconds between two polls."""
_POLL_SHARE = 0.0002
"""Polls take at most this share of the time. One takes 0.1 to 1 ms."""


class HostMonitor:
    """Observes the training process from the first pass over a loader on."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._now = clock.now
        self._began: tuple[float, float] | None = None
        self._thread, self._waited_s, self._counted_s = 0, nan, nan
        """The thread that iterates first, how long it had waited for a core when that was read, and
        when that was."""
        self._due_s = inf
        """When to read next what takes too long for a short run."""
        self._core_time: host.CoreTime | None = None
        self._descriptors: int | None = None
        self._forks = False
        """Whether the present pass starts workers by a fork."""
        self._threads_at_fork: int | None = None
        self._python_threads_at_fork: tuple[str, ...] = ()

    def begin_pass(self, config: LoaderConfig) -> None:
        """Note the Python threads that exist before a pass starts its workers."""
        starts = self._began is None or not config.persistent_workers
        if self._began is None:
            self._began = self._now(), process_time()
            self._due_s = self._began[0] + _POLL_EVERY_S
        self._forks = bool(starts and config.num_workers and config.start_method == "fork")
        if self._forks:
            self._python_threads_at_fork = _other_threads()

    def workers_started(self) -> None:
        """Count all threads that existed before. To read that from the kernel takes 0.2 ms, for
        which workers would have to wait. By now torch has started Python threads of its own."""
        if not self._thread:
            self._thread = threading.get_native_id()
            self._waited_s, self._counted_s = thread_waited_s(self._thread), self._now()
        if not self._forks:
            return
        threads = host.live_threads()
        if threads is not None:
            new = len(_other_threads()) - len(self._python_threads_at_fork)
            threads -= new
        self._threads_at_fork = threads

    def poll(self) -> None:
        """Read what takes too long for a short run, now and then."""
        begin_s = self._now()
        if begin_s < self._due_s:
            return
        self._count_descriptors()
        if self._core_time is None:
            self._core_time = host.core_time()
        end_s = self._now()
        self._due_s = end_s + max(_POLL_EVERY_S, (end_s - begin_s) / _POLL_SHARE)

    def core_wait_share(self) -> float | None:
        """Return the share of the time until now in which the thread that iterates could run, but
        had no core; ``None`` if unknown."""
        if isnan(self._waited_s):
            return None
        waited_s = thread_waited_s(self._thread) - self._waited_s
        wall_s = self._now() - self._counted_s
        return None if isnan(waited_s) or not wall_s > 0 else min(1.0, waited_s / wall_s)

    def snapshot(self, device: DeviceTotals) -> MainProcess:
        """Return the figures of the process from the first pass until now."""
        self._count_descriptors()
        began_s, cpu_s = self._began or (self._now(), process_time())
        cpu_s, wall_s = process_time() - cpu_s, self._now() - began_s
        new = new_memory()  # whose CPU time is not the training's
        return MainProcess(
            cpu_s=cpu_s,
            wall_s=wall_s,
            descriptors=self._descriptors,
            descriptor_limit=host.descriptor_limit(),
            shared_memory_bytes=host.shared_memory_bytes(),
            available_bytes=host.available_bytes(),
            threads_at_fork=self._threads_at_fork,
            python_threads_at_fork=self._python_threads_at_fork,
            new_shared_s_per_byte=new.shared_s,
            new_private_s_per_byte=new.private_s,
            release_shared_s_per_byte=new.release_s,
            sharing=_sharing(),
            pageable_copies=device.pageable_copies,
            blocking_copies=device.blocking_copies,
            device_utilisation=device.utilisation,
            device_memory_bytes=device.memory_bytes,
            core_wait_share=self.core_wait_share(),
            stolen_share=host.stolen_share(self._core_time, host.core_time()),
        )

    def _count_descriptors(self) -> None:
        now = host.open_descriptors()
        if now is not None:
            self._descriptors = max(now, self._descriptors or 0)


def _other_threads() -> tuple[str, ...]:
    """Return the names of all Python threads except the current one."""
    own = threading.get_ident()
    return tuple(thread.name for thread in threading.enumerate() if thread.ident != own)


def _sharing() -> str:
    multiprocessing: Any = torch.multiprocessing
    return str(multiprocessing.get_sharing_strategy())
