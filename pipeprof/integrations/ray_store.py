"""Send what a worker of Ray saved to the driver by Ray's own key-value store, before Ray kills it.

Ray ends the workers of tasks and actors without Python's exit handlers once their driver ends. So
the driver announces its end in the store, and waits until each worker has saved. The store needs no
further port. The driver removes what belongs to its run.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pipeprof.integrations.rank_store import pack, unpack
from pipeprof.log import suppress_and_log

_log = logging.getLogger(__name__)

_NAMESPACE = "pipeprof"
_MOST_BYTES = 64 << 20
"""Most that one worker sends. The head node of Ray keeps it in memory."""
_BEGUN, _ENDED = "begun", "ended"


class RayStore:
    """What the workers of one run say to their driver, and the driver to them.

    Each method raises what Ray raises, which has no common base class.
    """

    def __init__(self, run: str) -> None:
        """Use the store of the cluster that this process is connected to, for a run whose name is
        ``run``."""
        self._kv: Any = import_module("ray.experimental.internal_kv")
        self._run = run
        self._worker = f"{socket.gethostname()}/{os.getpid()}"

    @classmethod
    def of_worker(cls, run: str) -> RayStore | None:
        """Return the store if this process is a worker of Ray, else ``None``."""
        worker: Any = sys.modules.get("ray._private.worker")
        if worker is None:
            return None
        with suppress_and_log(_log, "if Ray kills this process, its profiles are lost"):
            if worker.global_worker.mode == worker.WORKER_MODE:
                return cls(run)
        return None

    def begin(self) -> None:
        """Say that this worker will have something to save."""
        self._put(f"{_BEGUN}/{self._worker}", b"")

    def is_ending(self) -> bool:
        """Return whether the driver is about to end."""
        return bool(self._kv._internal_kv_exists(self._key("ending"), namespace=_NAMESPACE))

    def end(self, files: Mapping[str, bytes]) -> None:
        """Say that this worker has saved, and send ``files``, unless they are too large."""
        data = pack(files)
        self._put(f"{_ENDED}/{self._worker}", data if len(data) <= _MOST_BYTES else b"")

    def announce_end(self) -> None:
        """Have each worker save: the driver is about to end."""
        self._put("ending", b"")

    def begun(self) -> set[str]:
        """Return the workers that have begun, each as ``HOST/PROCESS``."""
        return self._list(_BEGUN)

    def ended(self) -> set[str]:
        """Return the workers that have saved."""
        return self._list(_ENDED)

    def files(self, worker: str) -> dict[str, bytes]:
        """Return what a worker that has ended has sent."""
        sent = self._kv._internal_kv_get(self._key(f"{_ENDED}/{worker}"), namespace=_NAMESPACE)
        return unpack(sent) if sent else {}

    def clear(self) -> None:
        """Remove all that belongs to the run."""
        self._kv._internal_kv_del(self._key(""), del_by_prefix=True, namespace=_NAMESPACE)

    def _key(self, name: str) -> str:
        return f"{self._run}/{name}"

    def _put(self, name: str, value: bytes) -> None:
        self._kv._internal_kv_put(self._key(name), value, namespace=_NAMESPACE)

    def _list(self, kind: str) -> set[str]:
        prefix = self._key(f"{kind}/")
        keys = self._kv._internal_kv_list(prefix, namespace=_NAMESPACE)
        return {key.decode().removeprefix(prefix) for key in keys}
