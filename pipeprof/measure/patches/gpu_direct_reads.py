"""Record reads into a GPU's memory as the stage `read`: through kvikio, and `torch.cuda.gds`.

Of kvikio these are ``read`` and ``raw_read`` of its files, ``read`` of remote ones, and the wait
for what ``pread`` has begun. What is only queued in a stream is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipeprof.measure.patches.recorded_calls import recorded_read
from pipeprof.measure.patches.replacing import Patches, Replacement, wrapped_methods


def _of_files(module: Any) -> Iterator[Replacement]:
    yield from wrapped_methods(module.CuFile, {"read": recorded_read, "raw_read": recorded_read})
    yield from wrapped_methods(module.IOFuture, {"get": recorded_read})


def _of_remote_files(module: Any) -> Iterator[Replacement]:
    yield from wrapped_methods(module.RemoteFile, {"read": recorded_read})


def _of_torch(module: Any) -> Iterator[Replacement]:
    # torch imports it for everyone, so this is to be cheap: subclasses are not looked for
    load = module.GdsFile.load_storage
    yield module.GdsFile, "load_storage", recorded_read(load, nbytes=_storage_nbytes)


def _storage_nbytes(_: object, arguments: Sequence[Any]) -> int:
    """Return the bytes of the storage that ``load_storage`` has filled."""
    size: int = arguments[1].nbytes()
    return size


PATCHES: Patches = {
    "kvikio.cufile": _of_files,
    "kvikio.remote_file": _of_remote_files,
    "torch.cuda.gds": _of_torch,
}
