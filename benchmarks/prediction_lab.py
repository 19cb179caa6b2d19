"""Loaders that read from a disk and over a link of known speed (they need root on Linux)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random

import torch

from tests.lab.disk import evict, slow_disk
from tests.lab.net import shaped_link

DISK_BYTES_PER_S = 20_000_000
LINK_MBIT_PER_S = 80
SAMPLE = 32 * 1024
SAMPLES = 4096
OVER_LINK = 16 * 1024
_DECODE_S = 1e-3
_PORT = 8077
_SERVER = f"""
import socket, threading
block = bytes({OVER_LINK})
def serve(client):
    while client.recv(1):
        client.sendall(block)
server = socket.create_server(("", {_PORT}), backlog=64)
print("ready", flush=True)
while True:
    client, _ = server.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"""

_file = Path()
"""File that samples are read from; forked workers inherit it."""
_address = ""
"""Address of the host behind the link."""
_connections: dict[int, socket.socket] = {}
"""Process ID → its connection to the host."""


def from_disk(chance: Random, _: int) -> torch.Tensor:
    """Read a sample that is not in the page cache, and sleep instead of decoding it."""
    start = chance.randrange(SAMPLES) * SAMPLE
    with open(_file, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        file.seek(start)
        data = bytearray(file.read(SAMPLE))
        os.posix_fadvise(file.fileno(), start, SAMPLE, os.POSIX_FADV_DONTNEED)
    time.sleep(_DECODE_S * chance.uniform(0.5, 1.5))
    return torch.frombuffer(data, dtype=torch.uint8)


def over_link(chance: Random, _: int) -> torch.Tensor:
    """Request a sample from a host, and sleep instead of decoding it."""
    connection = _connections.get(os.getpid())
    if connection is None:
        connection = _connections[os.getpid()] = socket.create_connection((_address, _PORT))
    connection.sendall(b"?")
    data = bytearray(OVER_LINK)
    rest = memoryview(data)
    while rest:
        received = connection.recv_into(rest)
        if not received:
            raise ConnectionError("the host closed the connection")
        rest = rest[received:]
    time.sleep(_DECODE_S * chance.uniform(0.5, 1.5))
    return torch.frombuffer(data, dtype=torch.uint8)


@contextmanager
def throttled_disk() -> Iterator[Path]:
    """Yield a file on a throttled disk, which is not in the page cache."""
    global _file
    with tempfile.TemporaryDirectory(prefix="pipeprof-lab-", dir="/var/tmp") as folder:
        _file = Path(folder, "samples")
        with _file.open("wb") as file:
            for _ in range(SAMPLES):
                file.write(os.urandom(SAMPLE))
        evict(_file)
        with slow_disk(_file.parent, bytes_per_s=DISK_BYTES_PER_S):
            yield _file


@contextmanager
def link_to_a_host() -> Iterator[tuple[str, int]]:
    """Yield the address of a server behind it that answers each byte with `OVER_LINK` bytes."""
    global _address
    with shaped_link(LINK_MBIT_PER_S, 0) as link:
        _address = link.address
        with subprocess.Popen(
            [*link.inside, sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True
        ) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                yield _address, _PORT
            finally:
                for connection in _connections.values():
                    connection.close()
                _connections.clear()
                server.kill()


LAB: dict[
    str, tuple[Callable[[Random, int], torch.Tensor], Callable[[], AbstractContextManager[object]]]
]
LAB = {
    "throttled disk": (from_disk, throttled_disk),
    "shaped link": (over_link, link_to_a_host),
}
