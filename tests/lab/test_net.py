"""The link is what it says it is: the control of all that is measured over it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import pytest

from pipeprof.units import format_duration, format_rate
from tests.lab.conftest import RecordTruth
from tests.lab.net import Link, shaped_link

pytestmark = [pytest.mark.lab, pytest.mark.link]

_PORT = 7777
_FAR_END = f"""
import socket
with socket.create_server(("0.0.0.0", {_PORT})) as server:
    print("up", flush=True)
    link, _ = server.accept()
    with link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while link.recv(1) == b"?":
            link.sendall(b"!")
        while True:
            link.sendall(bytes(1 << 16))
"""
"""Answers each question mark, and to anything else with bytes without end."""


@contextmanager
def far_end(link: Link) -> Iterator[socket.socket]:
    with subprocess.Popen(
        [*link.inside, sys.executable, "-c", _FAR_END], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            with socket.create_connection((link.address, _PORT)) as near:
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                yield near
        finally:
            process.kill()


@pytest.mark.parametrize("round_trip_ms", [0, 5, 20])
@pytest.mark.parametrize("mbit_per_s", [80, 400])
def test_a_link_has_its_rate_and_its_round_trip(
    mbit_per_s: int, round_trip_ms: int, record_truth: RecordTruth
) -> None:
    with shaped_link(mbit_per_s, round_trip_ms) as link, far_end(link) as near:
        round_trip_s = float(np.median([round_trip(near) for _ in range(60)]))
        bytes_per_s = rate(near)
    name = f"link of {mbit_per_s} Mbit/s and {round_trip_ms} ms, plain sockets:"
    record_truth(f"{name} rate", format_rate(link.bytes_per_s), format_rate(bytes_per_s))
    record_truth(f"{name} round trip", f"{round_trip_ms} ms", format_duration(round_trip_s))
    # timers end up to 0.15 ms early; a woken process comes on top: 0.4 ms on a busier machine
    assert -0.0003 <= round_trip_s - link.round_trip_s <= 0.0015
    assert bytes_per_s == pytest.approx(link.bytes_per_s, rel=0.03)


def round_trip(near: socket.socket) -> float:
    start = perf_counter()
    near.sendall(b"?")
    near.recv(1)
    return perf_counter() - start


def rate(near: socket.socket) -> float:
    """Bytes a second, once the connection has reached its speed and the link's burst is used."""
    near.sendall(b".")
    received(near, 1.0)
    start = perf_counter()
    return received(near, 1.5) / (perf_counter() - start)


def received(near: socket.socket, seconds: float) -> int:
    end, count = perf_counter() + seconds, 0
    while perf_counter() < end:
        count += len(near.recv(1 << 20))
    return count


def test_nothing_of_it_stays() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for words in (("netns", "list"), ("-o", "link")):
        listed = subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
        assert "pipeprof" not in listed


def interrupted() -> None:
    try:
        with shaped_link(80, 5) as link:
            process = subprocess.Popen([*link.inside, "sleep", "60"])
            raise KeyboardInterrupt
    finally:
        process.wait(timeout=5)  # what ran there was ended
