"""How workers tell main about each batch: fixed records in memory that both see.

A record's place follows from the number of its batch, which torch calls its task: a batch is made
by one worker, so nothing locks and no worker ever waits. A record carries its number; main reads
the slot where that number must be, and takes a slot that holds another number for what it is: a
lost record.

Where a worker cannot have the memory, its records are lost and nothing else happens.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from math import nan
from mmap import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.log import log_caught
from pipeprof.measure.shared import SharedMemory

_log = logging.getLogger(__name__)

PLAIN = ("fetch_start_s", "fetch_end_s", "collate_s", "samples")
IN_PARTS = ("read_s", "decode_s", "transform_s", "bytes", "requests", "turns")
"""All 0 for a batch whose data set names no stages."""
METERED = ("cpu_s", "runqueue_s", "process_cpu_s", "system_s", "logical_bytes", "physical_bytes",
           "syscalls", "private_bytes", "descriptors", "threads", "tensors", "batch_bytes",
           "loose_bytes")  # fmt: skip
"""Of a sampled batch, by `pipeprof.measure.resource_sampler.ResourceSampler`."""
SAMPLED = (*METERED, "read_cpu_s", "decode_cpu_s", "transform_cpu_s", "collate_cpu_s")
TOLD = (*PLAIN, *IN_PARTS, *SAMPLED)
"""What is told of a batch by who made it: all of it, or up to and with `IN_PARTS`, or `PLAIN`."""
FIELDS = ("worker", "sent_s", "serialised_cpu_s", *TOLD)
"""Their meaning is in `BatchLog`. All are doubles, so that NaN can say unknown."""

_HEAD = struct.Struct(f"@q{1 + len(PLAIN)}dqq").pack_into
"""The record's number, when it was sent, what is plain, who tells how much, the number again."""
_REST = (*IN_PARTS, *SAMPLED)
_LINE_WORDS = 8
"""Of a cache line, which the head fills: of a plain batch's record, the others are not touched."""
_WORDS = 4 * _LINE_WORDS
_SLOT_BYTES = 8 * _WORDS
_PARTS = struct.Struct(f"@{len(IN_PARTS)}d").pack_into
_WHOLE = struct.Struct(f"@{len(_REST)}d").pack_into
_NUMBER = struct.Struct("@q")
_WANTED = struct.Struct("@qq")
_SAYS_BEYOND = _WANTED.size
_NOTE = struct.Struct("@d").pack_into
_PLAIN = len(PLAIN)
_SENT_AT, _REST_AT = 8, 8 * _LINE_WORDS
_SERIALISED_BEYOND = 8 * (_WORDS - 1) - _SENT_AT
_TOLD_WORD, _AGAIN_WORD = 6, 7
_SERIALISED_WORD = _WORDS - 1
_TASK_BITS = 40
_LENGTH_BITS = 8
_REQUESTS, _TURNS = TOLD.index("requests"), TOLD.index("turns")

Floats = npt.NDArray[np.float64]


class Ring:
    """Room for the records of the last ``slots`` tasks, and what main says to all workers.
    Linux only: raises OSError elsewhere."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._shared = SharedMemory((slots + 1) * _SLOT_BYTES if slots else 0)

    def writer(self, worker: int) -> RingWriter:
        return RingWriter(self._shared.view, self._slots, worker)

    def say(self, first: int, end: int) -> None:
        """To all workers: of which tasks a record is wanted. None, until that is said."""
        if self._shared.view is not None:
            _WANTED.pack_into(self._shared.view, self._slots * _SLOT_BYTES, first, end)

    def said(self) -> tuple[int, int]:
        """What `say` said last."""
        if self._shared.view is None:
            return 0, 0
        return _WANTED.unpack_from(self._shared.view, self._slots * _SLOT_BYTES)

    def says_what_it_does(self) -> bool:
        """Whether the data set named a stage, or asked storage, in any batch of which there is, or
        was, a record."""
        if self._shared.view is None:
            return False
        at = self._slots * _SLOT_BYTES + _SAYS_BEYOND
        return bool(_NUMBER.unpack_from(self._shared.view, at)[0])

    def read(self, epoch: int, tasks: npt.ArrayLike) -> Floats:
        """[tasks, `FIELDS`], of the workers' ``epoch``-th epoch (from 1); NaN where one is lost. A
        task that is NaN is lost."""
        asked = np.array(tasks, dtype=np.float64)
        told = np.full((len(asked), len(FIELDS)), nan)
        if self._shared.view is None or not len(asked):
            return told
        wanted = _number(epoch, np.nan_to_num(asked, nan=-1).astype(np.int64))
        slots = wanted % (1 << _TASK_BITS) % self._slots
        table = np.frombuffer(self._shared.view).reshape(-1, _WORDS)
        found = table[slots]
        # the second look: it may have been overwritten while it was copied
        still = table[slots, 0].view(np.int64)
        whole = found.view(np.int64)
        length, plain = whole[:, _TOLD_WORD] % (1 << _LENGTH_BITS), 3 + _PLAIN
        told[:, 0] = whole[:, _TOLD_WORD] >> _LENGTH_BITS
        told[:, 1] = found[:, 1]
        # noted with the moment: before that it is an older record's
        told[:, 2] = np.where(np.isnan(found[:, 1]), nan, found[:, _SERIALISED_WORD])
        told[:, 3:plain] = found[:, 2 : 2 + _PLAIN]
        told[:, plain:] = found[:, _LINE_WORDS : _LINE_WORDS + len(_REST)]
        # what is there of what was not told is older
        told[length == _PLAIN, plain : plain + len(IN_PARTS)] = 0.0
        told[length != len(TOLD), plain + len(IN_PARTS) :] = nan
        lost = (whole[:, 0] != wanted) | (whole[:, _AGAIN_WORD] != wanted) | (still != wanted)
        told[lost | np.isnan(asked)] = nan
        return told

    def close(self) -> None:
        self._shared.close()


def note_sent(memory: mmap | bytearray, place: int, moment: float, cpu_s: float) -> None:
    """In a `RingWriter.memory`, where `RingWriter.write` said: when the batch was serialised, and
    the CPU time that took."""
    _NOTE(memory, place, moment)
    _NOTE(memory, place + _SERIALISED_BEYOND, cpu_s)


def _number(epoch: int, task: Any) -> Any:
    """Of a record: never 0, which an unused slot holds, as epochs count from 1."""
    return (epoch << _TASK_BITS) + task


class RingWriter:
    """One worker's. Written for few steps: what the batches themselves take has driven our code and
    data out of the caches, and each line of either that has to come back costs 0.1 µs."""

    __slots__ = ("_epoch", "_slots", "_who", "memory")

    def __init__(self, memory: mmap | None, slots: int, worker: int) -> None:
        # where there is none, nothing can be written
        self.memory: mmap | bytearray = bytearray() if memory is None else memory
        self._slots, self._who = slots, worker << _LENGTH_BITS
        self._epoch = 0

    def begin_epoch(self) -> None:
        self._epoch += 1 << _TASK_BITS

    def heard(self) -> tuple[int, int]:
        """What `Ring.say` said last. Who reads it meanwhile may hear half of it."""
        return _WANTED.unpack_from(self.memory, self._slots * _SLOT_BYTES)

    def write(self, task: int, told: Sequence[float]) -> int | None:
        """The record of ``task``, as in `TOLD`, before main can know of the batch and so read it.
        Returns where in `memory` to note the moment at which it is sent. Raises nothing: ``None``
        when the record is lost, the batch is not."""
        at, number = task % self._slots * _SLOT_BYTES, self._epoch + task
        try:
            length = len(told)
            if length != _PLAIN:
                told = self._write_more(at, told)
            start_s, end_s, collate_s, samples = told
            # from first to last: who copies it meanwhile finds two numbers
            _HEAD(
                self.memory, at, number, nan, start_s, end_s, collate_s, samples,
                self._who + length, number,
            )  # fmt: skip
            return at + _SENT_AT
        except Exception as error:
            log_caught(_log, error, "a batch's record is lost")
            return None

    def _write_more(self, at: int, told: Sequence[float]) -> Sequence[float]:
        _NUMBER.pack_into(self.memory, at, 0)
        pack = _WHOLE if len(told) == len(TOLD) else _PARTS
        pack(self.memory, at + _REST_AT, *told[_PLAIN:])
        if told[_REQUESTS] or told[_TURNS]:
            _NUMBER.pack_into(self.memory, self._slots * _SLOT_BYTES + _SAYS_BEYOND, 1)
        return told[:_PLAIN]
