"""A host behind a link of known rate and delay: a namespace of this machine (root, Linux)."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.requirements import missing

_SPACE, _NEAR, _FAR = "pipeprof-lab", "pipeproflab0", "pipeproflab1"
_HERE, _THERE = "198.18.77.1", "198.18.77.2"
"""Of the addresses that are set aside for the testing of networks (RFC 2544)."""
PAYLOAD = 1448 / 1514
"""Of the bytes on the wire: the rest is Ethernet, IP and TCP headers, with time stamps."""
_QUEUE_MS = 200
"""That the far end holds before it drops packets."""


@dataclass(frozen=True)
class Link:
    bytes_per_s: float
    """Of payload, from there to here; the other way is free."""
    round_trip_s: float
    """Added; without, the link still takes some 0.05 ms."""
    address: str = _THERE
    """Of the host behind it."""
    inside: tuple[str, ...] = ("ip", "netns", "exec", _SPACE)
    """To be put before a command that is to run on that host."""


@contextmanager
def shaped_link(mbit_per_s: float, round_trip_ms: float) -> Iterator[Link]:
    """Of ``mbit_per_s`` on the wire. One at a time on a machine: others wait."""
    with ExitStack() as stack:
        stack.enter_context(alone())
        _clear()  # what a killed run has left
        stack.callback(_clear)
        try:
            ip("netns", "add", _SPACE)
            if round_trip_ms:
                stack.enter_context(_relay(round_trip_ms / 2000))
            else:
                ip("link", "add", _NEAR, "type", "veth", "peer", "name", _FAR)
            _up(mbit_per_s)
        except (OSError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip()
            missing(f"a shaped link (network namespaces, tbf and TAP devices, as root): {said}")
        yield Link(mbit_per_s * 1e6 / 8 * PAYLOAD, round_trip_ms / 1000)


def _up(mbit_per_s: float) -> None:
    inside = Link.inside
    ip("link", "set", _FAR, "netns", _SPACE)
    ip("address", "add", f"{_HERE}/30", "dev", _NEAR)
    ip("link", "set", _NEAR, "up")
    run_command(*inside, "ip", "link", "set", "lo", "up")
    run_command(*inside, "ip", "address", "add", f"{_THERE}/30", "dev", _FAR)
    run_command(*inside, "ip", "link", "set", _FAR, "up")
    shape = ("tbf", "rate", f"{mbit_per_s}mbit", "burst", "128kb", "latency", f"{_QUEUE_MS}ms")
    run_command(*inside, "tc", "qdisc", "replace", "dev", _FAR, "root", *shape)


@contextmanager
def _relay(one_way_s: float) -> Iterator[None]:
    script = Path(__file__).with_name("relay.py")
    with subprocess.Popen(
        [sys.executable, str(script), _NEAR, _FAR, str(one_way_s)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            _, said = process.communicate()
            raise OSError(said.strip().rpartition("\n")[2])
        yield


@contextmanager
def alone() -> Iterator[None]:
    with Path(tempfile.gettempdir(), "pipeprof-lab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear() -> None:
    """Nothing of ours stays: no process there, no device, no namespace."""
    kill_within(_SPACE)
    for words in (("link", "delete", _NEAR), ("netns", "delete", _SPACE)):
        with suppress(OSError, subprocess.CalledProcessError):
            ip(*words)


def kill_within(space: str) -> None:
    """Kill every process in a network namespace."""
    with suppress(OSError, subprocess.CalledProcessError):
        for pid in ip("netns", "pids", space).split():
            with suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)


def ip(*words: str) -> str:
    return run_command("ip", *words)


def run_command(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
