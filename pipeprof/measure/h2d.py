"""`pipeprof.to_device`: a batch's way from host to device, and what it costs.

On CUDA the time is the device's own, between two events around the copies. It starts when the
stream comes to the copies, so work queued before them does not count, even where the host waits
for it. The host's clock around ``.to()`` tells nothing of a copy: a blocking one waits for all
work before it, a non-blocking one for nothing. What does count is time in which the stream waits
for the host between copies: for many small tensors, for objects that move themselves slowly, or
for pageable memory, which the driver first copies to memory of its own.

On other devices it is the host's clock after all. Nothing is told of a copy to the processor,
which is none; of the one that starts CUDA; and of those captured into a graph.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any, TypeVar

import torch

from pipeprof.errors import UsageError
from pipeprof.log import log_caught
from pipeprof.measure.copies import DeviceCopy, here
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

    Bytes and seconds are the stage ``h2d`` of the loader that this thread iterates.

    Args:
        batch: Tensors, or mappings, lists, tuples and data classes of them, nested as you like.
            Anything else in it is passed on; an object with a method ``to`` moves itself.
        device: The device, such as ``"cuda"`` or ``"cuda:1"``.
        non_blocking: Do not wait for the copies, where the memory is pinned.
        pin: Copy pageable tensors to pinned memory first, where ``device`` is CUDA. It is meant
            for loaders that cannot take ``pin_memory=True``.
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
        target = _same_device(target, stream)
    called_s = perf_counter()
    if pin and target.type == "cuda":
        batch = mapped(batch, _pinned)
    mover, notes = _Mover(target, non_blocking, stream), here.notes
    start_s = perf_counter()
    on = _stream_of_copies(target, stream)
    start = notes.mark(on)
    moved: T = mover.move(batch)
    end = notes.mark(on)
    took_s = perf_counter() - start_s
    if mover.moved_any and (end is not None or target.type != "cuda"):
        notes.add(start, end, mover.as_copy(took_s, called_s))
    return moved


def _same_device(target: torch.device, stream: torch.cuda.Stream) -> torch.device:
    """``target``, with its index."""
    if target == torch.device("cuda"):
        target = torch.device("cuda", torch.cuda.current_device())
    if target != stream.device:
        raise UsageError(f"a stream of {stream.device} cannot copy to {target}")
    return target


def _stream_of_copies(target: torch.device, stream: torch.cuda.Stream | None) -> Any | None:
    """``None`` where there is none yet; a device that is not there is left for ``.to`` to tell."""
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
    """Moves the leaves of one batch, and remembers what was copied."""

    def __init__(
        self, target: torch.device, non_blocking: bool, stream: torch.cuda.Stream | None
    ) -> None:
        self._target = target
        self._non_blocking = non_blocking
        self._stream = stream
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Each tensor copied from the host, and its copy."""
        self._results: list[torch.Tensor] = []
        self._hidden = False
        """A leaf hid what it holds."""

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
                # its memory is the side stream's, and must outlast what this one does with it
                tensor.record_stream(current)
        return moved

    def as_copy(self, took_s: float, called_s: float) -> DeviceCopy:
        """``took_s``: on the host's clock."""
        size, pageable = self._sizes()
        return DeviceCopy(
            seconds=took_s,
            called_s=called_s,
            bytes=size,
            copies=len(self._pairs),
            pageable_copies=pageable,
            blocking=not self._non_blocking,
        )

    def _sizes(self) -> tuple[int | None, int | None]:
        """Bytes, and copies of pageable memory."""
        sources = [old for old, _ in self._pairs]
        try:
            strided = all(tensor.layout is torch.strided for tensor in sources)
            size = sum(tensor.nbytes for tensor in sources) if strided else None
            pageable = sum(not tensor.is_pinned() for tensor in sources)
        except Exception as error:
            # tensors of some other kind, or an error of the device that lingers
            log_caught(_log, error, "the bytes of a copy to the device are not known")
            return None, None
        return None if self._hidden else size, pageable

    def _move_leaf(self, leaf: Any, current: torch.cuda.Stream | None = None) -> Any:
        before = _contents(leaf)
        if current is None or _on_host(before):
            moved = self._to(leaf)
        else:
            # on the side stream it could be copied before the work that makes it is done
            with torch.cuda.stream(current):
                moved = self._to(leaf)
        after = _contents(moved)
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
        except TypeError:  # many a class takes a device and nothing else
            return leaf.to(self._target)


def _contents(leaf: Any) -> list[torch.Tensor] | None:
    try:
        return tensors_in(leaf)
    except Exception as error:  # an object may be anything
        log_caught(_log, error, "what an object copies to the device is not known")
        return None


def _on_host(tensors: list[torch.Tensor] | None) -> bool:
    """Whether all of them are known to be in the host's memory."""
    return tensors is not None and all(tensor.is_cpu for tensor in tensors)
