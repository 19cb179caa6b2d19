"""Define what is measured of the training process as a whole."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MainProcess:
    """Measurements of the training process at the end of the run."""

    cpu_s: float | None = None
    """CPU time of all its threads since the loader was first iterated."""
    wall_s: float | None = None
    """Wall time since the loader was first iterated."""
    descriptors: int | None = None
    """Most file descriptors observed open."""
    descriptor_limit: int | None = None
    shared_memory_bytes: int | None = None
    """Size of /dev/shm."""
    available_bytes: int | None = None
    """RAM still available within the cgroup's limit."""
    threads_at_fork: int | None = None
    """Native and Python threads that existed when workers were forked."""
    python_threads_at_fork: tuple[str, ...] = ()
    """Names of Python threads other than the one that forked."""
    new_shared_s_per_byte: float | None = None
    """CPU seconds for each byte of new shared memory, which workers need for their batches."""
    new_private_s_per_byte: float | None = None
    """The same of new private memory."""
    release_shared_s_per_byte: float | None = None
    """CPU seconds to give back each byte of a batch in shared memory, once it is dropped."""
    sharing: str | None = None
    """Torch's sharing strategy for tensors: ``file_descriptor`` or ``file_system``."""
    pageable_copies: int = 0
    """Copies to the device from memory that was not page-locked."""
    blocking_copies: int = 0
    """Copies that blocked the host."""
    device_utilisation: float | None = None
    """Share of the time, 0..1."""
    device_memory_bytes: int | None = None
    core_wait_share: float | None = None
    """Share, 0..1, of ``wall_s`` in which the thread that iterates could run, but had no core."""
    stolen_share: float | None = None
    """Share, 0..1, of the virtual machine's core time that its host gave to others since the loader
    was first iterated. ``None``: unknown."""
