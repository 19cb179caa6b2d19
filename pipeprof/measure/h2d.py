"""Move a batch from host to device by `pipeprof.to_device`, and measure the copies.

On CUDA the device itself measures the time, between two events around the copies. It starts when
the stream reaches the copies: work queued before them does not count, even where the host waits for
it. The host's clock around ``.to()`` would tell nothing about a copy: a blocking one waits for all
work before it, a non-blocking one for nothing.

Time in which the stream waits for the host between copies does count. Many small tensors cause it,
objects that move themselves slowly, and pageable memory, which the driver first copies to its own.

On other devices the host's clock measures. Three kinds of copies are not measured: those to the
CPU, which copy nothing; the one that initialises CUDA; and those captured into a graph.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any, TypeVar

import torch

from pipeprof.errors import UsageError
from pipeprof.log import log_caught
from pipeprof.measure.copies import DeviceCopy, this_thread
from pipeprof.measure.nested import mapped, tensors_in

_log = logging.getLogger(__name__)

T = TypeVar("T")


def to_device(
    batch: T,
    device: torch.device | str | int,
    *,
    non_blocking: bool = True,
    pin: bool = False,
    stream: torch.cuda.Stream | None = None,
) -> T:
    """Move a batch to a device as ``tensor.to(device)`` does, and measure it.

    Bytes and seconds are reported as the stage ``h2d`` of the loader that this thread iterates.

    Args:
        batch: Tensors, or mappings, lists, tuples and data classes of them, at any depth.
            Anything else in it is passed on; an object with a method ``to`` moves itself.
        device: The device, such as ``"cuda"`` or ``"cuda:1"``.
        non_blocking: Do not wait for the copies, where the memory is pinned.
        pin: Copy pageable tensors to pinned memory first, where ``device`` is CUDA. It is meant
            for loaders that cannot use ``pin_memory=True``.
        stream: A side stream of ``device`` for the copies, so that they overlap with queued work.
            The current stream then waits for them.

    Returns:
        A batch of the same types, dtypes and shapes, with every tensor on ``device``.

    Raises:
        UsageError: ``stream`` belongs to another device.

    Examples:
        >>> for batch in loader:
        ...     batch = pipeprof.to_device(batch, "cuda")
        ...     train_step(batch)
    """
    target = torch.device(device)
    if stream is not None:
        target = _device_of(target, stream)
    called_s = perf_counter()
    if pin and target.type == "cuda":
        batch = mapped(batch, _pinned)
    mover, copies = _Mover(target, non_blocking, stream), this_thread.copies
    start_s = perf_counter()
    copy_stream = _copy_stream(target, stream)
    start = copies.mark(copy_stream)
    moved: T = mover.move(batch)
    end = copies.mark(copy_stream)
    host_s = perf_counter() - start_s
    if copies.active and mover.moved_any and (end is not None or target.type != "cuda"):
        copies.add(start, end, mover.as_copy(host_s, called_s))
    return moved


def _device_of(target: torch.device, stream: torch.cuda.Stream) -> torch.device:
    """Return ``target`` with its index, and raise `UsageError` where ``stream`` is on another."""
    if target == torch.device("cuda"):
        target = torch.device("cuda", torch.cuda.current_device())
    if target != stream.device:
        raise UsageError(f"a stream of {stream.device} cannot copy to {target}")
    return target


def _copy_stream(target: torch.device, stream: torch.cuda.Stream | None) -> Any | None:
    """Return the stream of the copies, or ``None`` where there is none yet. A missing device raises
    nothing here: ``.to`` will raise torch's own error."""
    if stream is not None:
        return stream
    cuda: Any = torch.cuda
    if target.type != "cuda" or not cuda.is_initialized():
        return None
    try:
        return cuda.current_stream(target)
    except Exception as error:
        log_caught(_log, error, "a copy to the device is not timed")
        return None


def _pinned(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.pin_memory() if leaf.is_cpu else leaf
    return leaf.pin_memory() if hasattr(leaf, "pin_memory") else leaf


class _Mover:
    """Moves the leaves of one batch, and records the copies."""

    def __init__(
        self, target: torch.device, non_blocking: bool, stream: torch.cuda.Stream | None
    ) -> None:
        self._target = target
        self._non_blocking = non_blocking
        self._stream = stream
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Each tensor copied from the host, with its copy."""
        self._results: list[torch.Tensor] = []
        self._hidden = False
        """Whether a leaf hides which tensors it holds."""

    @property
    def moved_any(self) -> bool:
        return bool(self._pairs) or self._hidden

    def move(self, batch: Any) -> Any:
        if self._stream is None:
            return mapped(batch, self._move_leaf)
        current = torch.cuda.current_stream(self._target)
        with torch.cuda.stream(self._stream):
            moved = mapped(batch, lambda leaf: self._move_leaf(leaf, current))
        current.wait_stream(self._stream)
        for tensor in self._results:
            if tensor.is_cuda:
                # the side stream owns its memory, which must last as long as this one uses it
                tensor.record_stream(current)
        return moved

    def as_copy(self, host_s: float, called_s: float) -> DeviceCopy:
        """Describe the copies, which took ``host_s`` seconds on the host's clock."""
        size, pageable = self._sizes()
        return DeviceCopy(
            seconds=host_s,
            called_s=called_s,
            bytes=size,
            copies=len(self._pairs),
            pageable_copies=pageable,
            blocking=not self._non_blocking,
        )

    def _sizes(self) -> tuple[int | None, int | None]:
        """Return the bytes copied and the number of pageable copies; ``None`` where unknown."""
        sources = [old for old, _ in self._pairs]
        try:
            strided = all(tensor.layout is torch.strided for tensor in sources)
            size = sum(tensor.nbytes for tensor in sources) if strided else None
            pageable = sum(not tensor.is_pinned() for tensor in sources)
        except Exception as error:
            # tensors of an unusual kind, or an earlier error of the device
            log_caught(_log, error, "the bytes of a copy to the device are not known")
            return None, None
        return None if self._hidden else size, pageable

    def _move_leaf(self, leaf: Any, current: torch.cuda.Stream | None = None) -> Any:
        before = _tensors_of(leaf)
        if current is None or _on_host(before):
            moved = self._to(leaf)
        else:
            # the side stream could copy it before the current one has computed it
            with torch.cuda.stream(current):
                moved = self._to(leaf)
        after = _tensors_of(moved)
        self._results += after or []
        if before is None or after is None or len(before) != len(after):
            self._hidden = True
            return moved
        for old, new in zip(before, after, strict=True):
            if old.is_cpu and not new.is_cpu:
                self._pairs.append((old, new))
        return moved

    def _to(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.to(self._target, non_blocking=self._non_blocking)
        try:
            return leaf.to(self._target, non_blocking=self._non_blocking)
        except TypeError:  # many classes take a device and nothing else
            return leaf.to(self._target)


def _tensors_of(leaf: Any) -> list[torch.Tensor] | None:
    try:
        return tensors_in(leaf)
    except Exception as error:  # the code of an object may raise anything
        log_caught(_log, error, "what an object copies to the device is not known")
        return None


def _on_host(tensors: list[torch.Tensor] | None) -> bool:
    """Return whether all tensors are known to be in the host's memory."""
    return tensors is not None and all(tensor.is_cpu for tensor in tensors)
