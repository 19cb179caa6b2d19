"""Run the trials of a sweep on a node of a Ray cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pipeprof.errors import PipeprofError, StorageError, UsageError
from pipeprof.log import log_caught
from pipeprof.measure.ray_cluster import connect, import_ray, missing_module
from pipeprof.sweep.engines.engine import carried_out, result_of

_log = logging.getLogger(__name__)

T = TypeVar("T")

_OF_INIT = "runtime_env"
"""The option that is for the connection: the user's code and packages get to the nodes by it."""


class RayEngine:
    """Runs each trial as a task of Ray, and all of them on one node while that lives."""

    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        """Connect to the cluster at ``address``.

        Args:
            address: ``"auto"``, or the address of the cluster.
            options: Options of Ray's tasks, such as ``num_cpus`` and ``resources``, which name the
                kind of node; and ``runtime_env``.

        Raises:
            UsageError: Ray is not installed, or does not know an option.
            StorageError: The cluster cannot be reached.
        """
        self._ray = import_ray("--on ray")
        connect(self._ray, address, options.get(_OF_INIT))
        given = {name: value for name, value in options.items() if name != _OF_INIT}
        self._options = {"num_cpus": 1, **given, "max_retries": 0}
        self._node: str | None = None
        try:
            self._ray.remote(**self._options)(carried_out)
        except (TypeError, ValueError) as error:
            raise UsageError(f"Ray refuses --on-options: {error}") from None

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Run ``function`` on the node. See `Engine.call`."""
        ray = self._ray
        task = ray.remote(**self._options)(_on_node)
        if self._node is not None:
            strategies = ray.util.scheduling_strategies
            place = strategies.NodeAffinitySchedulingStrategy(self._node, soft=True)
            task = task.options(scheduling_strategy=place)
        answer: tuple[T | None, PipeprofError | None]
        try:
            self._node, answer = ray.get(task.remote(function, arguments))
        except ray.exceptions.RayError as error:
            log_caught(_log, error, "the trial has no result")
            if module := missing_module(error):
                raise UsageError(
                    f"the nodes of the Ray cluster have no module {module}: install it, or give "
                    '--on-options \'{"runtime_env": {"pip": ["pipeprof"]}}\''
                ) from None
            reason = str(error).strip().splitlines()[-1:]
            raise StorageError(f"A trial on the Ray cluster ended: {''.join(reason)}") from None
        return result_of(answer)

    def close(self) -> None:
        self._ray.shutdown()


def _on_node(function: Callable[..., T], arguments: tuple[object, ...]) -> tuple[str, Any]:
    import ray  # type: ignore[import-not-found, unused-ignore]

    return ray.get_runtime_context().get_node_id(), carried_out(function, arguments)
