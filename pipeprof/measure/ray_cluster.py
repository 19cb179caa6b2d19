"""Connect to a Ray cluster, and say what is wrong where that fails."""

from __future__ import annotations

import logging
import os
import re
import socket
from importlib import import_module
from typing import Any

from pipeprof.errors import StorageError, UsageError
from pipeprof.log import log_caught

_log = logging.getLogger(__name__)

_CONNECT_S = 10.0

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def import_ray(option: str) -> Any:
    """Return the module ``ray``. Raises `UsageError`, which names ``option``, without it."""
    # pipeprof must not send reports on its use anywhere
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import_module("ray.util.scheduling_strategies")
        return import_module("ray")
    except ImportError:
        raise UsageError(f"{option} needs Ray: pip install 'pipeprof[ray]'") from None


def connect(ray: Any, address: str, runtime_env: Any = None) -> None:
    """Connect to the cluster at ``address``, with Ray's ``runtime_env``. Raises `StorageError`."""
    if ray.is_initialized():
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():  # where nothing answers, Ray would try for minutes
            socket.create_connection((host, int(port)), _CONNECT_S).close()
        ray.init(
            address=address,
            runtime_env=runtime_env,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:
        log_caught(_log, error, "there is no cluster")
        raise StorageError(f"The Ray cluster at {address} cannot be reached.") from None


def missing_module(error: Exception) -> str | None:
    """Return the name of the module that nodes of the cluster lack, by an error of Ray."""
    found = _NO_MODULE.search(str(error))
    return None if found is None else found[1]
