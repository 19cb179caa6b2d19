"""Runs a loader that was drawn at random: the work of its costs."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from hashlib import pbkdf2_hmac
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import pipeprof
from benchmarks.prediction_lab import OVER_LINK, SAMPLE, SAMPLES
from benchmarks.random_loader_surroundings import ANSWER_BYTES, FILE_BYTES, Surroundings
from benchmarks.random_loaders import IN_FETCH, Cost, Kind, LoaderSpec, Place
from pipeprof.model import Stage

ENDLESS = 10**7
"""Length of a map-style data set, in batches."""
_ADDITION_S, _HASH_S, _BLOCK_S, _READ_S = 30e-9, 0.4e-6, 120e-6, 100e-6
"""Approximate seconds to add in Python, to hash, to inflate `_BLOCK`, and to read `_READ` bytes."""
_PAGE_S = 2.5e-6
"""Approximate seconds to use a page of memory first, and to give it back."""
_CREDIT_S = 0.3
"""Seconds in which a disk that was idle exceeds its rate."""
_BLOCK, _READ = 1 << 16, 1 << 20
"""Bytes of an inflated block, and of one read from the page cache."""


def loader_of(spec: LoaderSpec, around: Surroundings, first: int = 0) -> DataLoader[Any]:
    """Return the loader, to be iterated within `pinning`. ``first`` is the number of its first
    batch. Batches of one number are alike in all loaders of a seed, except for what was cut."""
    work = Work(spec, around, first)
    options: dict[str, Any] = {
        "num_workers": spec.num_workers, "collate_fn": _Collate(work),
        "pin_memory": bool(work.at("pin")),
    }  # fmt: skip
    if spec.num_workers:
        options |= {
            "prefetch_factor": spec.prefetch_factor, "in_order": spec.in_order,
            "multiprocessing_context": spec.start_method,
        }  # fmt: skip
    if spec.iterable:
        return DataLoader(_Stream(work), batch_size=spec.batch_size, **options)
    return DataLoader(_Map(work), batch_sampler=_BatchSampler(work), **options)


def use_credit(spec: LoaderSpec, around: Surroundings) -> None:
    """Read from the disk, if the loader does, until it has only its rate left. The kernel lets a
    disk that was idle exceed it."""
    if any(cost.kind == "disk" for cost in spec.costs):
        chance, end = Random(0), time.perf_counter() + _CREDIT_S
        while time.perf_counter() < end:
            _read_uncached(around.disk, chance)


@contextmanager
def pinning(spec: LoaderSpec, around: Surroundings, first: int = 0) -> Iterator[None]:
    """If the loader pins memory, emulate an accelerator, and the time that its pinning takes."""
    work, count = Work(spec, around, first), iter(range(ENDLESS))

    def pin(data: Any, device: object = None) -> Any:
        work.do("pin", next(count))
        return data

    answers = {
        "is_available": True, "current_accelerator": torch.device("cpu"),
        "current_device_index": 0, "set_device_index": None,
    }  # fmt: skip
    with ExitStack() as stack:
        if work.at("pin"):
            stack.enter_context(mock.patch("torch.utils.data._utils.pin_memory.pin_memory", pin))
            for name, answer in answers.items():
                fake = mock.Mock(return_value=answer)
                stack.enter_context(mock.patch.object(torch.accelerator, name, fake))
        yield


class Work:
    """Does the work of a loader's costs, in any process."""

    def __init__(self, spec: LoaderSpec, around: Surroundings, first: int = 0) -> None:
        self.spec, self._around, self._first = spec, around, first
        self._connections: dict[tuple[int, str], socket.socket] = {}  # by process and host

    def __reduce__(self) -> Any:
        return Work, (self.spec, self._around, self._first)

    def __del__(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def at(self, place: Place) -> list[tuple[int, Cost]]:
        """Return the costs in this place, with their numbers."""
        return [each for each in enumerate(self.spec.costs) if each[1].place == place]

    def do(self, place: Place, batch: int, sample: int | None = None) -> None:
        """Do the work of a batch, or of one of its samples, in this place."""
        for number, cost in self.at(place):
            pieces, size = cost.pieces, self.spec.batch_size
            if sample is not None:
                pieces = (sample + 1) * cost.pieces // size - sample * cost.pieces // size
            if pieces:
                seed = (self.spec.seed * 10**9 + self._first + batch) * 10 + number
                chance = Random(seed)
                piece_s = cost.piece_s * cost.jitter.factor(chance)
                for _ in range(pieces):
                    self._piece(cost.kind, piece_s, chance)

    def _piece(self, kind: Kind, seconds: float, chance: Random) -> None:
        """Do work of this kind that takes about ``seconds``."""
        if kind == "sleep":
            time.sleep(max(0.0, seconds - self._around.overshoot_s))
        elif kind == "python":
            _add(round(seconds / _ADDITION_S))
        elif kind == "hash":
            pbkdf2_hmac("sha256", b"password", b"salt", max(1, round(seconds / _HASH_S)))
        elif kind == "inflate":
            for _ in range(round(seconds / _BLOCK_S)):
                zlib.decompress(_packed())
        elif kind == "file":
            self._read(round(seconds / _READ_S * _READ), chance)
        elif kind == "request":
            self._ask(self._around.server, struct.pack("<d", seconds), ANSWER_BYTES)
        elif kind == "disk":
            _read_uncached(self._around.disk, chance)
        elif kind == "link":
            self._ask(self._around.host, b"?", OVER_LINK)
        elif kind == "memory":
            _use_memory(max(1, round(seconds / _PAGE_S)))
        else:
            raise ValueError(f"nobody knows how to do {kind}")

    def _read(self, size: int, chance: Random) -> None:
        with open(self._around.file, "rb") as file:
            for start in range(0, size, _READ):
                file.seek(chance.randrange(FILE_BYTES - _READ) & ~4095)
                file.read(min(_READ, size - start))

    def _ask(self, address: tuple[str, int], request: bytes, size: int) -> None:
        connection = self._connection(address)
        connection.sendall(request)
        if len(connection.recv(size, socket.MSG_WAITALL)) < size:
            raise ConnectionError("the server closed the connection")

    def _connection(self, address: tuple[str, int]) -> socket.socket:
        """Return the connection of this process."""
        key = os.getpid(), address[0]
        if key not in self._connections:
            self._connections[key] = socket.create_connection(address)
            self._connections[key].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._connections[key]


def _read_uncached(disk: Path, chance: Random) -> None:
    """Read a sample that is not in the page cache, and evict it again."""
    with open(disk, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        start = chance.randrange(SAMPLES) * SAMPLE
        file.seek(start)
        file.read(SAMPLE)
        os.posix_fadvise(file.fileno(), start, SAMPLE, os.POSIX_FADV_DONTNEED)


def _use_memory(pages: int) -> None:
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        for start in range(0, len(memory), mmap.PAGESIZE):
            memory[start] = 1


def _add(rounds: int) -> int:
    total = 0
    for number in range(rounds):
        total += number
    return total


@cache
def _packed() -> bytes:
    return zlib.compress(Random(0).randbytes(_BLOCK // 4) + bytes(_BLOCK - _BLOCK // 4))


def _sample(work: Work, batch: int, sample: int) -> torch.Tensor:
    for stage in IN_FETCH:
        if work.at(stage) and work.spec.annotated:
            with pipeprof.stage(Stage(stage)):
                work.do(stage, batch, sample)
        else:
            work.do(stage, batch, sample)
    return torch.full((16,), float(batch))


class _Map(Dataset[torch.Tensor]):
    def __init__(self, work: Work) -> None:
        self._work = work

    def __getitem__(self, index: int) -> torch.Tensor:
        return _sample(self._work, *divmod(index, self._work.spec.batch_size))


class _Stream(IterableDataset[torch.Tensor]):
    """A stream in which each worker yields batches of its own, without end."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = get_worker_info()
        batch, step = (worker.id, worker.num_workers) if worker else (0, 1)
        while True:
            for sample in range(self._work.spec.batch_size):
                yield _sample(self._work, batch, sample)
            batch += step


class _BatchSampler:
    def __init__(self, work: Work) -> None:
        self._work = work

    def __iter__(self) -> Iterator[list[int]]:
        size = self._work.spec.batch_size
        for batch in range(ENDLESS):
            self._work.do("sampler", batch)
            yield list(range(batch * size, (batch + 1) * size))

    def __len__(self) -> int:
        return ENDLESS


class _Collate:
    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, samples: list[torch.Tensor]) -> list[torch.Tensor]:
        self._work.do("collate", int(samples[0][0]))
        tensors = sum(cost.pieces for _, cost in self._work.at("transfer"))
        return [torch.stack(samples), *(torch.zeros(16) for _ in range(tensors - 1))]
