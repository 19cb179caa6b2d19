"""Shared memory in which workers report each batch to the main process, without locks.

The number of a batch, which torch calls its task, gives the slot of its record. One worker makes a
batch, so no two workers write the same record, and none ever waits. A record carries its number:
where main finds another number than it expects, the record is lost.

A worker that cannot open the memory loses its records, and continues undisturbed.
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

TIMING_FIELDS = ("fetch_start_s", "fetch_end_s", "collate_s", "samples")
STAGE_FIELDS = ("read_s", "decode_s", "transform_s", "bytes", "requests", "turns")
"""Fields that are 0 for a batch whose data set names no stages."""
RESOURCE_FIELDS = ("cpu_s", "runqueue_s", "process_cpu_s", "system_s", "logical_bytes",
                   "physical_bytes", "syscalls", "private_bytes", "descriptors", "threads",
                   "tensors", "batch_bytes", "loose_bytes")  # fmt: skip
"""Fields that `pipeprof.measure.resource_sampler.ResourceSampler` measures, for sampled batches."""
SAMPLED_FIELDS = (*RESOURCE_FIELDS, "read_cpu_s", "decode_cpu_s", "transform_cpu_s",
                  "collate_cpu_s", "collate_new_bytes")  # fmt: skip
REPORTED_FIELDS = (*TIMING_FIELDS, *STAGE_FIELDS, *SAMPLED_FIELDS)
"""Fields that the maker of a batch reports. A report has one of three lengths: `TIMING_FIELDS`
alone, those and `STAGE_FIELDS`, or all."""
RECORD_FIELDS = ("worker", "sent_s", "serialised_cpu_s", *REPORTED_FIELDS)
"""Columns that `Ring.read` returns; `BatchLog` explains each. All are doubles, and NaN is
unknown."""

# A record fills four cache lines. The first is its head. It has the record's number, when the batch
# was sent, the CPU seconds of serialising it, `TIMING_FIELDS`, the worker and the length of its
# report, and the number again. A report of `TIMING_FIELDS` alone touches no other line. The collate
# time and the samples share a word, as single floats, so that the head fits its line.
_PACK_HEAD = struct.Struct("@q4d2fqq").pack_into
_BODY_FIELDS = (*STAGE_FIELDS, *SAMPLED_FIELDS)
_LINE_WORDS = 8
_WORDS = 4 * _LINE_WORDS
_SLOT_BYTES = 8 * _WORDS
_PACK_STAGES = struct.Struct(f"@{len(STAGE_FIELDS)}d").pack_into
_PACK_BODY = struct.Struct(f"@{len(_BODY_FIELDS)}d").pack_into
_NUMBER = struct.Struct("@q")
_WINDOW = struct.Struct("@qq")
_STAGES_REPORTED_OFFSET = _WINDOW.size
"""The memory begins with the window, and with whether stages were reported. Both are in the page of
the first records, as each process pays for each page that it touches first."""
_PACK_SENT = struct.Struct("@dd").pack_into
_TIMING_COUNT = len(TIMING_FIELDS)
_SENT_OFFSET, _BODY_OFFSET = 8, 8 * _LINE_WORDS
_COLLATE_WORD, _WORKER_AND_LENGTH_WORD, _NUMBER_AGAIN_WORD = 5, 6, 7
_TASK_BITS = 40
_LENGTH_BITS = 8
_REQUESTS, _STAGE_CHANGES = REPORTED_FIELDS.index("requests"), REPORTED_FIELDS.index("turns")

Floats = npt.NDArray[np.float64]


class Ring:
    """The records of the last ``slots`` tasks, and the window of tasks that workers record. It
    works on Linux only, and raises OSError elsewhere."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._shared = SharedMemory((slots + 1) * _SLOT_BYTES if slots else 0)

    def writer(self) -> RingWriter:
        return RingWriter(self._shared.view, self._slots)

    def set_window(self, first: int, end: int) -> None:
        """Ask all workers to record the tasks from ``first`` up to ``end``, and no others."""
        if self._shared.view is not None:
            _WINDOW.pack_into(self._shared.view, 0, first, end)

    def window(self) -> tuple[int, int]:
        """Return what `set_window` set last: (0, 0), no task, until it is called."""
        if self._shared.view is None:
            return 0, 0
        return _WINDOW.unpack_from(self._shared.view)

    def reports_stages(self) -> bool:
        """Return whether any recorded batch so far named a stage or made a storage request."""
        if self._shared.view is None:
            return False
        return bool(_NUMBER.unpack_from(self._shared.view, _STAGES_REPORTED_OFFSET)[0])

    def read(self, epoch: int, tasks: npt.ArrayLike) -> Floats:
        """Return the records of ``tasks`` in the workers' ``epoch``, counted from 1. The shape is
        [tasks, `RECORD_FIELDS`]. A lost record is a row of NaN, and so is a NaN task."""
        asked = np.array(tasks, dtype=np.float64)
        table = np.full((len(asked), len(RECORD_FIELDS)), nan)
        if self._shared.view is None or not len(asked):
            return table
        expected = _record_number(epoch, np.nan_to_num(asked, nan=-1).astype(np.int64))
        slots = expected % (1 << _TASK_BITS) % self._slots + 1
        memory = np.frombuffer(self._shared.view).reshape(-1, _WORDS)
        records = memory[slots]
        # read again: a worker may have overwritten the record while it was copied
        number_after = memory[slots, 0].view(np.int64)
        words = records.view(np.int64)
        length = words[:, _WORKER_AND_LENGTH_WORD] % (1 << _LENGTH_BITS)
        stages = 3 + _TIMING_COUNT
        sampled = stages + len(STAGE_FIELDS)
        table[:, 0] = words[:, _WORKER_AND_LENGTH_WORD] >> _LENGTH_BITS
        table[:, 1:5] = records[:, 1:_COLLATE_WORD]
        table[:, 5:stages] = records[:, _COLLATE_WORD : _COLLATE_WORD + 1].view(np.float32)
        table[:, stages:] = records[:, _LINE_WORDS : _LINE_WORDS + len(_BODY_FIELDS)]
        # fields that were not reported still hold an older record's values
        table[length == _TIMING_COUNT, stages:sampled] = 0.0
        table[length != len(REPORTED_FIELDS), sampled:] = nan
        numbers = words[:, 0], words[:, _NUMBER_AGAIN_WORD], number_after
        lost = np.any([number != expected for number in numbers], axis=0)
        table[lost | np.isnan(asked)] = nan
        return table

    def close(self) -> None:
        self._shared.close()


def note_sent(memory: mmap | bytearray, offset: int, sent_s: float, cpu_s: float) -> None:
    """Write when a batch was sent, and the CPU seconds that serialising it took. ``memory`` is
    `RingWriter.memory`, and ``offset`` is what `RingWriter.write` returned."""
    _PACK_SENT(memory, offset, sent_s, cpu_s)


def _record_number(epoch: int, task: Any) -> Any:
    """Return the number of a record: never 0, which an unused slot holds, as epochs count from
    1."""
    return (epoch << _TASK_BITS) + task


class RingWriter:
    """Writes the records of one worker, in as few steps as possible. Making a batch drives our code
    and data out of the caches. Each cache line that has to come back costs 0.1 µs."""

    __slots__ = ("_epoch", "_shifted_worker", "_slots", "memory", "window")

    def __init__(self, memory: mmap | None, slots: int) -> None:
        # without memory every write fails, and every record is lost
        self.memory: mmap | bytearray = bytearray() if memory is None else memory
        self._slots, self._shifted_worker, self._epoch = slots, 0, 0
        self.window: Sequence[int] = (0, 0)
        """The first task that main wants recorded, and the end of them. They change while it is
        read: one may be the old one while main sets both."""
        if memory is not None:
            self.window = memoryview(memory)[: _WINDOW.size].cast("q")

    def begin_epoch(self, worker: int) -> None:
        """Write the records of the next epoch, and of ``worker``, from now on."""
        self._shifted_worker = worker << _LENGTH_BITS
        self._epoch += 1 << _TASK_BITS

    def write(self, task: int, report: Sequence[float]) -> int | None:
        """Write the record of ``task``, before main can learn of the batch and read it.

        Returns the offset in `memory` at which `note_sent` writes, or ``None`` when the record is
        lost. It raises nothing: the batch must not be lost with its record.
        """
        start, number = (task % self._slots + 1) * _SLOT_BYTES, self._epoch + task
        try:
            length = len(report)
            if length != _TIMING_COUNT:
                report = self._write_body(start, report)
            start_s, end_s, collate_s, samples = report
            # the number is written first and last: a reader meanwhile finds two numbers
            _PACK_HEAD(
                self.memory, start, number, nan, nan, start_s, end_s, collate_s, samples,
                self._shifted_worker + length, number,
            )  # fmt: skip
            return start + _SENT_OFFSET
        except Exception as error:
            log_caught(_log, error, "a batch's record is lost")
            return None

    def _write_body(self, start: int, report: Sequence[float]) -> Sequence[float]:
        """Write all but the timings, which are returned."""
        _NUMBER.pack_into(self.memory, start, 0)
        pack = _PACK_BODY if len(report) == len(REPORTED_FIELDS) else _PACK_STAGES
        pack(self.memory, start + _BODY_OFFSET, *report[_TIMING_COUNT:])
        if report[_REQUESTS] or report[_STAGE_CHANGES]:
            _NUMBER.pack_into(self.memory, _STAGES_REPORTED_OFFSET, 1)
        return report[:_TIMING_COUNT]
