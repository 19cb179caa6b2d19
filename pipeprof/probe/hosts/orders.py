"""Define the orders that the hosts of a probe get, and their answers.

They are sent as MessagePack of these types alone, so that nobody on the network can send code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from pipeprof.probe.result import LoadPoint, LoadSpec, ProbeResult


class Look(msgspec.Struct, frozen=True, tag=True):
    """List the objects."""


class Ramp(msgspec.Struct, frozen=True, tag=True):
    """Find the best load of one host, by `pipeprof.probe.concurrency_ramp`."""

    seconds: float
    most_bytes: int
    most_requests: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Start the processes of the next loads, so that all hosts begin these at once."""

    processes: int


class Load(msgspec.Struct, frozen=True, tag=True):
    """Read, write, or both at once. Hosts with the same order read different blocks."""

    demand: LoadSpec
    """The load of each host."""
    seconds: float
    most_bytes: int
    """Most bytes that each host may read."""
    most_requests: int
    seed: int
    read: bool = True
    read_files: tuple[str, ...] = ()
    """Each host's file to read in the place of the objects."""
    write_bytes: int = 0
    """Size of the checkpoint that each host writes; 0 writes none."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Remove what was written, and end."""


Order = Look | Ramp | Ready | Load | Stop


@dataclass(frozen=True)
class HostLoad:
    """What one host measured under a `Load`."""

    point: LoadPoint | None = None
    """``None`` when too few requests ended for a rate, or it only wrote."""
    bytes: int = 0
    """Bytes taken from the budget."""
    requests: int = 0
    cut_short: bool = False
    """Whether the budget ended the load."""
    wrote_s: float | None = None
    wrote_file: str = ""
    """URL of the file that was written; it stays until `Stop`."""


@dataclass(frozen=True)
class HostListing:
    """The objects as one host sees them."""

    objects: int
    size_bytes: int
    digest: str
    """Of the names and sizes of all objects. Hosts with another one see another storage."""
    client: str
    cache: str


@dataclass(frozen=True)
class Answer:
    """The answer to an order. At most one field besides ``host`` is set."""

    host: str
    """Name of the host."""
    failed: str = ""
    """Why the order could not be carried out, as a sentence."""
    listing: HostListing | None = None
    ramp: ProbeResult | None = None
    load: HostLoad | None = None


class Team(Protocol):
    """The hosts that probe together."""

    hosts: Sequence[int]
    """Their numbers in ascending order: their ranks, where a launcher started them."""
    notes: Sequence[str]
    """What a reader of the result has to know of the team."""

    def order(self, hosts: Sequence[int], order: Order, timeout_s: float) -> Mapping[int, Answer]:
        """Have ``hosts`` begin an order at the same moment, and return their answers. A host that
        has died, or does not answer in time, has none."""
        ...
