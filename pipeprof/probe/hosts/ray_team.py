"""Bring the hosts of a probe together by Ray: an actor on each of as many nodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pipeprof.errors import StorageError, UsageError
from pipeprof.log import log_caught
from pipeprof.measure.ray_cluster import connect, import_ray, missing_module
from pipeprof.probe.concurrency_ramp import ProbeSpec
from pipeprof.probe.hosts.member import Member
from pipeprof.probe.hosts.orders import Answer, Order, Stop
from pipeprof.probe.work import Slice

_log = logging.getLogger(__name__)

_PLACE_S = 60.0
"""Seconds in which the nodes must have a core for the probe."""
_LEAVE_S = 5.0


class RayTeam:
    """The nodes of a Ray cluster, one actor on each. Close it."""

    def __init__(
        self,
        address: str,
        hosts: int | None,
        spec: ProbeSpec,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Start an actor on ``hosts`` nodes of the cluster at ``address``, on all for ``None``.

        Raises:
            UsageError: Ray is not installed, or the cluster has too few nodes.
            StorageError: The cluster cannot be reached, or its nodes have no core to spare.
        """
        self._ray = ray = import_ray("--ray")
        connect(ray, address)
        nodes = sum(node["Alive"] and node["Resources"].get("CPU", 0) >= 1 for node in ray.nodes())
        if not nodes or (hosts or 0) > nodes:
            wanted = f"--hosts {hosts}" if hosts else "a probe"
            raise UsageError(
                f"the Ray cluster has {nodes} nodes with a CPU, and {wanted} needs {hosts or 1}"
            )
        self.hosts: Sequence[int] = range(hosts or nodes)
        self.notes: Sequence[str] = ()
        bundles = [{"CPU": 1}] * len(self.hosts)
        self._group = ray.util.placement_group(bundles, strategy="STRICT_SPREAD")
        if not self._group.wait(timeout_seconds=_PLACE_S):
            self.close()
            raise StorageError(
                f"{len(self.hosts)} nodes of the Ray cluster have no idle CPU at once after "
                f"{_PLACE_S:.0f} s; ask for fewer --hosts."
            )
        self._members = [self._started(index, spec, options) for index in self.hosts]

    def order(self, hosts: Sequence[int], order: Order, timeout_s: float) -> Mapping[int, Answer]:
        """Have ``hosts`` carry out ``order``, and begin within some ms. See `Team.order`."""
        calls = {
            self._members[host].answer.remote(order, Slice(index, len(hosts))): host
            for index, host in enumerate(hosts)
        }
        self._ray.wait(list(calls), num_returns=len(calls), timeout=timeout_s)
        answers = {host: self._answered(call, host) for call, host in calls.items()}
        return {host: answer for host, answer in answers.items() if answer is not None}

    def close(self) -> None:
        """End the actors, and give their cores back."""
        if hasattr(self, "_members"):
            self.order(self.hosts, Stop(), _LEAVE_S)
        self._ray.util.remove_placement_group(self._group)
        self._ray.shutdown()

    def _answered(self, call: Any, host: int) -> Answer | None:
        try:
            answer: Answer = self._ray.get(call, timeout=0)
        except self._ray.exceptions.RayError as error:  # it died, or is late
            log_caught(_log, error, f"host {host} of the probe does not answer")
            _refuse_setup(error)
            return None
        return answer

    def _started(self, index: int, spec: ProbeSpec, options: Mapping[str, Any] | None) -> Any:
        strategies = self._ray.util.scheduling_strategies
        place = strategies.PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=index
        )
        actor = self._ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy=place)(Member)
        return actor.remote(spec, dict(options or {}))


def _refuse_setup(error: Exception) -> None:
    """Raise `UsageError` where nodes lack a module, so that none will ever answer."""
    if module := missing_module(error):
        raise UsageError(
            f"the nodes of the Ray cluster have no module {module}: install it, or start the "
            "cluster's job with a runtime environment that does"
        ) from None
