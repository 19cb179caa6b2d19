"""Files and servers that the costs of loaders drawn at random use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.prediction_lab import link_to_a_host, throttled_disk
from benchmarks.random_loaders import LoaderSpec

FILE_BYTES = 1 << 27
ANSWER_BYTES = 1024
_SERVER = f"""
import socket, struct, threading, time
answer = bytes({ANSWER_BYTES})
def serve(client):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while request := client.recv(8, socket.MSG_WAITALL):
        time.sleep(struct.unpack("<d", request)[0])
        client.sendall(answer)
server = socket.create_server(("127.0.0.1", 0), backlog=64)
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


@dataclass(frozen=True)
class Surroundings:
    """Files and servers that the costs use. Workers receive it with the data set."""

    file: Path = Path()
    """A file in the page cache."""
    server: tuple[str, int] = ("", 0)
    disk: Path = Path()
    """A file on a throttled disk."""
    host: tuple[str, int] = ("", 0)
    """The address of a server behind a shaped link."""
    overshoot_s: float = 0.0
    """Seconds by which a sleep is longer than requested."""


@contextmanager
def surroundings(specs: Sequence[LoaderSpec]) -> Iterator[Surroundings]:
    """Provide what any of these loaders needs."""
    kinds = {cost.kind for spec in specs for cost in spec.costs}
    around = Surroundings(overshoot_s=_overshoot_s())
    with ExitStack() as stack:
        if "file" in kinds:
            around = replace(around, file=stack.enter_context(_file()))
        if "request" in kinds:
            around = replace(around, server=stack.enter_context(_server()))
        if "disk" in kinds:
            around = replace(around, disk=stack.enter_context(throttled_disk()))
        if "link" in kinds:
            around = replace(around, host=stack.enter_context(link_to_a_host()))
        yield around


@cache
def _overshoot_s() -> float:
    extra = []
    for _ in range(51):
        start = perf_counter()
        time.sleep(0.5e-3)
        extra.append(perf_counter() - start - 0.5e-3)
    return max(0.0, median(extra))


@contextmanager
def _file() -> Iterator[Path]:
    """Yield a file in the page cache."""
    with tempfile.NamedTemporaryFile(prefix="pipeprof-bench-") as file:
        block = os.urandom(1 << 20)
        for _ in range(FILE_BYTES >> 20):
            file.write(block)
        file.flush()
        yield Path(file.name)


@contextmanager
def _server() -> Iterator[tuple[str, int]]:
    """Run a server that answers after a requested delay, and yield its address."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield "127.0.0.1", int(server.stdout.readline())
        finally:
            server.kill()
