"""A link of known delay: ``relay.py NEAR FAR ONE_WAY_S`` makes two TAP devices, and carries what is
sent into one to the other, so much later.

Not every kernel has netem. Segments come and go as the kernel has put them together (up to 64 KiB
at a time), so that Python is fast enough. Says ``ready`` when the devices are there; ends, and they
with it, when its standard input does.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import sys
from collections import deque
from contextlib import suppress
from time import monotonic

_TAP, _NO_INFO, _OFFLOAD_HEADER = 0x0002, 0x1000, 0x4000
_SET_INTERFACE, _SET_OFFLOAD = 0x400454CA, 0x400454D0
_CHECKSUMS_AND_SEGMENTS = 0x1 | 0x2
_MOST = 10 + 18 + 65_535
"""Bytes of an offload header, an Ethernet header and an IP packet."""
_LATE_S = 0.00017
"""By about so much a process wakes up too late."""


def _tap(name: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    flags = _TAP | _NO_INFO | _OFFLOAD_HEADER
    fcntl.ioctl(descriptor, _SET_INTERFACE, struct.pack("16sH22x", name.encode(), flags))
    fcntl.ioctl(descriptor, _SET_OFFLOAD, _CHECKSUMS_AND_SEGMENTS)
    return descriptor


def _carry(near: int, far: int, one_way_s: float) -> None:
    other = {near: far, far: near}
    waiting = {far: deque[tuple[float, bytes]](), near: deque[tuple[float, bytes]]()}
    while True:
        first = min((queue[0][0] for queue in waiting.values() if queue), default=None)
        patience = None if first is None else max(0.0, first - monotonic())
        readable, _, _ = select.select([sys.stdin, near, far], [], [], patience)
        if sys.stdin in readable:
            return
        for end in readable:
            _take(end, waiting[other[end]], one_way_s)
        for end, queue in waiting.items():
            while queue and queue[0][0] <= monotonic():
                with suppress(OSError):  # the device is not up (yet): lost, as on any link
                    os.write(end, queue.popleft()[1])


def _take(end: int, queue: deque[tuple[float, bytes]], one_way_s: float) -> None:
    while True:
        try:
            packet = os.read(end, _MOST)
        except OSError:
            return  # no more, or the device is not up
        queue.append((monotonic() + one_way_s, packet))


if __name__ == "__main__":
    with suppress(OSError):  # not in every container; packets are then a little late
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    near, far = _tap(sys.argv[1]), _tap(sys.argv[2])
    print("ready", flush=True)
    _carry(near, far, float(sys.argv[3]) - _LATE_S)
