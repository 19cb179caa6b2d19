"""Keep account of the hosts of a probe: their names, who is left, and what they may still read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof.errors import StorageError
from pipeprof.probe.budget import Budget
from pipeprof.probe.concurrency_ramp import ProbeSpec
from pipeprof.probe.hosts.orders import Answer, HostLoad, Load, Look, Order, Ramp, Ready, Team
from pipeprof.probe.hosts.result import HostsPoint
from pipeprof.probe.result import LoadSpec, ProbeResult
from pipeprof.storage.urls import redact

_ANSWER_S = 60.0
"""Seconds beyond those of an order after which a host counts as dead."""
_SLOWEST_WRITE = 1e6
"""Bytes/s; a host that writes more slowly counts as dead."""
_MOST_NAMES = 5


class HostGroup:
    """The hosts that take part. A host that dies is left out from then on."""

    def __init__(self, team: Team, spec: ProbeSpec) -> None:
        """Have all hosts of ``team`` list the objects of ``spec``.

        Raises:
            StorageError: Some hosts do not see them, or see other ones.
        """
        self.names: dict[int, str] = {}
        """Host → its name."""
        self.notes: list[str] = [*team.notes]
        self.too_short = 0
        """Loads in which some host measured no rate."""
        self._team, self._spec, self._loads = team, spec, 0
        everybody = team.hosts
        answers = team.order(everybody, Look(), _ANSWER_S)
        self._name(answers)
        self._check(answers)
        silent = [f"host {host}" for host in everybody if host not in answers]
        if silent:
            self.notes.append(f"{self._some(silent)} did not answer and took no part")

    @property
    def hosts(self) -> list[int]:
        """The hosts that are left."""
        return list(self.names)

    def ramp(self, seconds: float, budget: Budget) -> ProbeResult:
        """Have the first host find its best load, alone."""
        first = self.hosts[0]
        order = Ramp(seconds, *budget.left)
        answers = self._ask([first], order, 3 * seconds + _ANSWER_S)
        found = answers[first].ramp if first in answers else None
        if found is None:
            raise StorageError("The first host of the probe has ended.")
        budget.bytes, budget.requests = found.read_bytes, found.read_requests
        return found

    def start(self, processes: int) -> None:
        """Have each host start so many processes."""
        self._ask(self.hosts, Ready(processes), _ANSWER_S)

    def read(
        self,
        hosts: Sequence[int],
        demand: LoadSpec,
        seconds: float,
        budget: Budget,
        files: tuple[str, ...] = (),
    ) -> HostsPoint | None:
        """Have ``hosts`` read for ``seconds`` at the same time, each other blocks of the objects,
        or its own one of ``files``. Returns ``None`` where one of them measured no rate."""
        loads = self._load(hosts, demand, seconds, budget, read_files=files)
        points = {self.names[host]: load.point for host, load in loads.items()}
        measured = {name: point for name, point in points.items() if point is not None}
        if len(measured) == len(hosts):
            return HostsPoint(demand, measured)
        self.too_short += 1
        return None

    def write(self, demand: LoadSpec, read_s: float, budget: Budget) -> dict[int, HostLoad]:
        """Have all hosts write a checkpoint at the same time, and read for ``read_s`` meanwhile."""
        size = self._spec.write_bytes
        return self._load(self.hosts, demand, read_s, budget, read=read_s > 0, write_bytes=size)

    def _load(
        self, hosts: Sequence[int], demand: LoadSpec, seconds: float, budget: Budget, **more: Any
    ) -> dict[int, HostLoad]:
        self._loads += 1
        # other blocks each time: the last ones may be in a cache
        of_a_host = budget.part(1 / len(hosts))
        order = Load(demand, seconds, *of_a_host.left, seed=self._loads, **more)
        timeout_s = seconds + order.write_bytes / _SLOWEST_WRITE + _ANSWER_S
        answers = self._ask(hosts, order, timeout_s)
        loads = {host: each.load for host, each in answers.items() if each.load}
        for load in loads.values():
            used = Budget(0, 0)
            used.bytes, used.requests, used.spent = load.bytes, load.requests, load.cut_short
            budget.add(used)
        return loads

    def _ask(self, hosts: Sequence[int], order: Order, timeout_s: float) -> dict[int, Answer]:
        """Return the answers. Raises `StorageError` where a host cannot carry out the order."""
        answers = dict(self._team.order(hosts, order, timeout_s))
        for host in hosts:
            if host not in answers:
                self.notes.append(f"{self.names.pop(host)} ended during the probe")
            elif answers[host].failed:
                raise StorageError(f"{self.names[host]}: {answers[host].failed}")
        if not answers:
            raise StorageError("No host of the probe answers any more.")
        return answers

    def _name(self, answers: Mapping[int, Answer]) -> None:
        """Name the hosts; several on one machine get their numbers, too."""
        shared = Counter(each.host for each in answers.values())
        for host, each in sorted(answers.items()):
            self.names[host] = each.host if shared[each.host] == 1 else f"{each.host}#{host}"

    def _check(self, answers: Mapping[int, Answer]) -> None:
        """Raise `StorageError` unless all hosts see the same objects."""
        failed = {self.names[host]: each.failed for host, each in answers.items() if each.failed}
        if len(failed) == len(answers):
            raise StorageError(next(iter(failed.values())))
        if failed:
            raise StorageError(f"{self._some(list(failed))} failed: {next(iter(failed.values()))}")
        digests = {self.names[host]: each.listing.digest for host, each in answers.items()
                   if each.listing}  # fmt: skip
        usual = Counter(digests.values()).most_common(1)[0][0]
        other = [name for name, digest in digests.items() if digest != usual]
        if other:
            raise StorageError(
                f"{self._some(other)} see other objects at {redact(self._spec.url)} than the rest. "
                "All hosts must share one storage."
            )

    def _some(self, names: Sequence[str]) -> str:
        """Return the names, or the first few of many, in words."""
        listed = ", ".join(names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return f"{len(names)} of {len(self._team.hosts)} hosts ({listed}{more})"
