"""Bring the hosts of a probe together by a store of torch, under any launcher.

The first host leads. Under torchrun the store is the launcher's own; elsewhere the first host
serves one.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import msgspec

from pipeprof.errors import StorageError, UsageError
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.model import JobPlace
from pipeprof.probe.hosts.member import Member
from pipeprof.probe.hosts.orders import Answer, Order, Stop
from pipeprof.probe.work import Slice

_log = logging.getLogger(__name__)

_MEET_S = 120.0
"""Seconds in which all hosts must come."""
_LEAVE_S = 5.0
_POLL_S = 0.05
_TURN = timedelta(seconds=2)
"""A host that waits hears Ctrl-C after so long."""
_FIRST_PORT, _PORTS = 20_000, 10_000
_RANKS, _HOSTS = "ranks", "hosts"
"""Keys: how many ranks came, and those that take part."""


class _Broadcast(msgspec.Struct, frozen=True):
    hosts: tuple[int, ...]
    order: Order


@dataclass(frozen=True)
class MeetingPoint:
    """Where the store of a job is."""

    host: str
    port: int
    serve: bool
    """Whether this process serves it."""


def find_meeting_point(place: JobPlace, variables: Mapping[str, str] = os.environ) -> MeetingPoint:
    """Return where the hosts of a job meet: ``MASTER_ADDR`` and ``MASTER_PORT``, or the first node
    of a Slurm step and a port that follows from the job's number.

    Raises:
        UsageError: The launcher does not say where the first host is.
    """
    host = variables.get("MASTER_ADDR") or first_node(
        variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_JOB_NODELIST", "")
    )
    if not host:
        raise UsageError(
            f"{place.launcher} does not say where rank 0 is: set MASTER_ADDR to its host, and "
            "MASTER_PORT to a free port of it, for all ranks."
        )
    port, job = variables.get("MASTER_PORT", ""), re.sub("[^0-9]", "", place.job_id or "")
    if port and not re.fullmatch("[0-9]{1,5}", port):
        raise UsageError(f"MASTER_PORT is {port!r}; it must be the number of a free port.")
    served = variables.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    number = int(port) if port else _FIRST_PORT + int(job or 0) % _PORTS
    return MeetingPoint(host, number, not served and place.rank == 0)


def first_node(node_list: str) -> str:
    """Return the first host of Slurm's list of nodes, such as ``"gpu[07-12,15],login"``; empty
    where there is none."""
    match = re.match(r"([^\[,]*)(?:\[([^\],-]*)[^\]]*\])?([^,]*)", node_list)
    return "".join(part or "" for part in match.groups()) if match else ""


def join(store: Any, place: JobPlace) -> int | None:
    """Count this process in, and return the number of its host, which is its rank; ``None`` where
    another process of this host takes part."""
    takes_part = place.rank == 0 or not place.local_rank
    if takes_part:
        store.append(_HOSTS, f"{place.rank},")
    store.add(_RANKS, 1)  # last: when all ranks have come, all hosts are known
    return place.rank if takes_part else None


class StoreTeam:
    """The hosts of a job, as their leader sees them. It is the first of them itself."""

    def __init__(self, store: Any, place: JobPlace, member: Member) -> None:
        """Wait until all ranks of ``place``'s job have joined ``store``, a store of torch."""
        self._store, self._member, self._number = store, member, 0
        ranks = place.world_size or 1
        end = monotonic() + _MEET_S
        while (came := int(store.add(_RANKS, 0))) < ranks and monotonic() < end:
            sleep(_POLL_S)
        self.hosts: Sequence[int] = sorted(
            int(rank) for rank in store.get(_HOSTS).decode().split(",") if rank
        )
        missing = ranks - came
        self.notes: Sequence[str] = [f"{missing} of {ranks} ranks did not come"] if missing else []

    def order(self, hosts: Sequence[int], order: Order, timeout_s: float) -> Mapping[int, Answer]:
        """Have ``hosts`` carry out ``order`` at the same moment. See `Team.order`."""
        number, end = self._number, monotonic() + timeout_s
        self._number += 1
        message = msgspec.msgpack.encode(_Broadcast(tuple(hosts), order))
        try:
            self._store.set(_order_key(number), message)
        except Exception as error:  # of C++
            log_caught(_log, error, "the probe's store has gone")
            raise StorageError(
                "The hosts of the probe meet no more: their store has gone."
            ) from None
        found = {}
        for index, host in enumerate(hosts):
            if host == 0:
                found[0] = self._member.answer(order, Slice(index, len(hosts)))
        for host in hosts:
            if host and (answer := self._received(number, host, end)):
                found[host] = answer
        return found

    def close(self) -> None:
        """End the other hosts, and wait a moment until they have heard it."""
        self.order(self.hosts, Stop(), _LEAVE_S)

    def _received(self, number: int, host: int, end: float) -> Answer | None:
        key = _answer_key(number, host)
        while not self._has(key, timedelta(seconds=max(0.0, end - monotonic()))):
            if monotonic() >= end:
                return None
        answer = msgspec.msgpack.decode(self._store.get(key), type=Answer)
        self._store.delete_key(key)
        return answer

    def _has(self, key: str, timeout: timedelta) -> bool:
        try:
            self._store.wait([key], min(_TURN, timeout))
        except Exception as error:  # of C++
            log_caught(_log, error, f"{key} is not there yet")
            return False
        return True


def follow(store: Any, host: int, member: Member) -> None:
    """Carry out the leader's orders until it sends `Stop`. Raises `StorageError` when it dies."""
    number = 0
    while True:
        try:
            store.wait([_order_key(number)], _TURN)
        except Exception as error:
            if type(error).__name__ != "DistStoreError":  # else it was only the time
                log_caught(_log, error, "the probe's store has gone")
                raise StorageError("The first host of the probe has ended.") from None
            continue
        found = msgspec.msgpack.decode(store.get(_order_key(number)), type=_Broadcast)
        number += 1
        if host in found.hosts:
            part = Slice(found.hosts.index(host), len(found.hosts))
            answer = msgspec.msgpack.encode(member.answer(found.order, part))
            with suppress_and_log(_log, "the leader gets no answer"):
                store.set(_answer_key(number - 1, host), answer)
        if isinstance(found.order, Stop):
            return


def open_store(point: MeetingPoint, attempt: int | None) -> Any:
    """Open the store of a job's ``attempt``.

    Raises:
        StorageError: It cannot be served or reached.
    """
    # its warnings of each second that a host waits are not for the user
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    import torch.distributed

    dist: Any = torch.distributed

    timeout = timedelta(seconds=_MEET_S)
    try:
        store = dist.TCPStore(
            point.host, point.port, None, point.serve, timeout, wait_for_workers=False
        )
    except Exception as error:
        log_caught(_log, error, "the hosts of the probe do not meet")
        action = "served at" if point.serve else "reached at"
        raise StorageError(
            f"The hosts of the probe cannot meet: no store can be {action} {point.host}, port "
            f"{point.port}. Set MASTER_ADDR to the host of rank 0, and MASTER_PORT to a free port."
        ) from None
    return dist.PrefixStore(f"pipeprof-probe/{attempt or 0}", store)


def _order_key(number: int) -> str:
    return f"order/{number}"


def _answer_key(number: int, host: int) -> str:
    return f"answer/{number}/{host}"
