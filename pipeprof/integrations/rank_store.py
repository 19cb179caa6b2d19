"""Send what a rank saved to rank 0 by torchrun's own store, where they share no disk.

The store is the one by which the launchers of all nodes found each other. It needs no further port,
and no rank has to wait for another one, as in a collective. It ends with the launcher of node 0.
"""

from __future__ import annotations

import logging
import os
import sys
import zlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from pipeprof.log import log_caught
from pipeprof.model import JobPlace

_log = logging.getLogger(__name__)

_MOST_BYTES = 256 << 20
"""Most that all ranks together send. The launcher of node 0 keeps it in memory."""
_ANSWER_S = 5.0


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return ``files``, by their names, as one value of a store."""
    return zlib.compress(msgspec.msgpack.encode(dict(files)), level=1)


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files that `pack` was given."""
    return msgspec.msgpack.decode(zlib.decompress(data), type=dict[str, bytes])


class RankStore:
    """Keeps the files of each rank under its number."""

    def __init__(self, store: Any, place: JobPlace) -> None:
        """Use ``store``, a store of torch, in the job of ``place``."""
        self._store, self._place = store, place

    @classmethod
    def of_launcher(
        cls, place: JobPlace, variables: Mapping[str, str] = os.environ
    ) -> RankStore | None:
        """Return the store of torchrun, which started this process; ``None`` where it has none, or
        it does not answer."""
        dist: Any = sys.modules.get("torch.distributed")
        if dist is None or variables.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            return None
        try:
            host, port = variables["MASTER_ADDR"], int(variables["MASTER_PORT"])
            timeout = timedelta(seconds=_ANSWER_S)
            store = dist.TCPStore(host, port, None, False, timeout, wait_for_workers=False)
        except Exception as error:  # of C++
            log_caught(_log, error, "the launcher's store is not used")
            return None
        return cls(store, place)

    def send(self, files: Mapping[str, bytes]) -> bool:
        """Send what this rank saved, by the names of the files. Returns False where that is too
        much, or the store has gone."""
        data = pack(files)
        if len(data) > _MOST_BYTES // (self._place.world_size or 1):
            return False
        try:
            self._store.set(self._key(self._place.rank), data)
        except Exception as error:
            log_caught(_log, error, "rank 0 does not get the profiles of this rank")
            return False
        return True

    def receive(self, rank: int) -> dict[str, bytes] | None:
        """Return what ``rank`` has sent; ``None`` where it has not sent anything yet."""
        try:
            if not self._store.check([self._key(rank)]):
                return None
            return unpack(self._store.get(self._key(rank)))
        except Exception as error:
            log_caught(_log, error, f"the profiles of rank {rank} are not received")
            return None

    def _key(self, rank: int) -> str:
        return f"pipeprof/{self._place.job_id}/{self._place.attempt or 0}/{rank}"
