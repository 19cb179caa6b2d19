"""Carry out the orders of a probe on one host."""

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from pipeprof.errors import PipeprofError
from pipeprof.log import log_caught
from pipeprof.probe.budget import Budget
from pipeprof.probe.concurrency_ramp import ProbeSpec, probe
from pipeprof.probe.hosts.orders import (
    Answer,
    HostListing,
    HostLoad,
    Load,
    Look,
    Order,
    Ramp,
    Ready,
)
from pipeprof.probe.load import apply_load
from pipeprof.probe.requirements import OwnFolder, checkpoint_piece, own_folder
from pipeprof.probe.result import LoadPoint, ProbeResult
from pipeprof.probe.target import Target, open_target
from pipeprof.probe.work import ALL, Slice
from pipeprof.probe.worker_pool import ReaderPool
from pipeprof.storage import ObjectInfo
from pipeprof.storage.urls import join

_log = logging.getLogger(__name__)

_CHECKPOINT = "checkpoint"


class Member:
    """One host of a probe. It keeps its open objects, its processes and what it wrote until it is
    closed."""

    def __init__(self, spec: ProbeSpec, options: Mapping[str, Any] | None = None) -> None:
        """Read the objects of ``spec.url`` with fsspec's ``options``."""
        self._spec, self._options = spec, dict(options or {})
        self._host = socket.gethostname()
        self._stack = ExitStack()
        self._readers: dict[str, ReaderPool] = {}
        self._processes = 1
        self._folder: OwnFolder | None = None

    def answer(self, order: Order, part: Slice) -> Answer:
        """Carry out an order; never raises `PipeprofError`. ``part``: this host's part of the
        blocks."""
        try:
            match order:
                case Look():
                    return Answer(self._host, listing=self._look())
                case Ramp():
                    return Answer(self._host, ramp=self._ramp(order))
                case Ready():
                    self._processes = order.processes
                    self._pool(self._spec.url)
                    return Answer(self._host)
                case Load():
                    return Answer(self._host, load=self._load(order, part))
                case _:
                    self.close()
                    return Answer(self._host)
        except PipeprofError as error:
            log_caught(_log, error, "the host answers that it failed")
            return Answer(self._host, failed=str(error))

    def close(self) -> None:
        """End the processes, close the objects, and remove what was written."""
        self._stack.close()

    def _look(self) -> HostListing:
        target = self._pool(self._spec.url).target
        size = sum(item.size for item in target.objects)
        digest = _digest(target.objects)
        return HostListing(len(target.objects), size, digest, target.client, target.cache)

    def _ramp(self, order: Ramp) -> ProbeResult:
        spec = replace(
            self._spec,
            seconds=order.seconds,
            most_bytes=order.most_bytes,
            most_requests=order.most_requests,
            feed_seconds=0,
            write_bytes=0,
        )
        return probe(self._pool(self._spec.url).target, spec, options=self._options)

    def _load(self, order: Load, part: Slice) -> HostLoad:
        files = order.read_files
        url = files[part.index % len(files)] if files else self._spec.url
        whole = ALL if files else part
        readers = self._pool(url) if order.read else None
        budget = Budget(order.most_bytes, order.most_requests)

        def read() -> LoadPoint | None:
            if readers is None:
                return None
            return apply_load(readers, order.demand, order.seconds, budget, order.seed, part=whole)

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            wrote_s, wrote = self._write(order.write_bytes) if order.write_bytes else (None, "")
            point = reading.result()
        return HostLoad(point, budget.bytes, budget.requests, budget.spent, wrote_s, wrote)

    def _write(self, size_bytes: int) -> tuple[float, str]:
        if self._folder is None:
            self._folder = self._stack.enter_context(own_folder(self._spec.url, self._options))
        seconds = self._folder.write(_CHECKPOINT, checkpoint_piece(size_bytes), size_bytes)
        return seconds, join(self._folder.url, _CHECKPOINT)

    def _pool(self, url: str) -> ReaderPool:
        if url not in self._readers:
            target: Target = open_target(url, self._options)
            self._stack.callback(target.close)
            self._readers[url] = self._stack.enter_context(ReaderPool(target))
        self._readers[url].grow(self._processes)
        return self._readers[url]


def _digest(objects: Sequence[ObjectInfo]) -> str:
    found = hashlib.sha256()
    for item in objects:
        found.update(f"{item.path}\0{item.size}\0".encode())
    return found.hexdigest()[:16]
