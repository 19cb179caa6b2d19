"""A file of the settings that searches chose, for the next run to start with."""

from __future__ import annotations

import logging
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import orjson
import torch
from torch.utils.data import DataLoader

from pipeprof.errors import OutputError, UsageError
from pipeprof.log import log_caught
from pipeprof.model import TunedSetting
from pipeprof.store import write_atomically
from pipeprof.version import __version__

_log = logging.getLogger(__name__)

_SCHEMA = "pipeprof.tuned/1"


@dataclass(frozen=True)
class RememberedSettings:
    """Settings by what they depend on: loader, data set, machine and versions."""

    path: Path

    def find(self, loader: DataLoader[Any]) -> TunedSetting | None:
        """Return what an earlier run chose for ``loader``; ``None`` if nothing is known. Raises
        `UsageError` for a file of another kind."""
        return self._read().get(_key(loader))

    def keep(self, loader: DataLoader[Any], setting: TunedSetting) -> None:
        """Save ``setting`` unless it is saved already. An error is logged: it must not end
        training."""
        try:
            before, key = self._read(), _key(loader)
            if before.get(key) == setting:
                return
            settings = {**before, key: setting}
            document = {"schema": _SCHEMA, "settings": settings}
            write_atomically(self.path, orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
        except (OutputError, UsageError) as error:
            log_caught(_log, error, "the setting that was found is not remembered")

    def _read(self) -> dict[str, TunedSetting]:
        try:
            document = orjson.loads(self.path.read_bytes())
            if document["schema"] != _SCHEMA:
                raise KeyError("schema")
            settings = msgspec.convert(document["settings"], dict[str, TunedSetting])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{self.path} is not a file of tuned settings; name another, or remove it"
            ) from None
        return settings


def kind_of(loader: DataLoader[Any]) -> str:
    """Return what ``loader`` loads, and how; not how much."""
    kind = type(loader.dataset)
    return (
        f"{kind.__module__}.{kind.__qualname__}, batches of {loader.batch_size} "
        f"by {_name(loader.collate_fn)}"
    )


def _key(loader: DataLoader[Any]) -> str:
    return "; ".join(
        [
            f"{kind_of(loader)}, {_length(loader)}",
            f"{len(os.sched_getaffinity(0))} cores of {platform.node()}",
            f"torch {torch.__version__}, pipeprof {__version__}",
        ]
    )


def _length(loader: DataLoader[Any]) -> str:
    try:
        return f"{len(loader)} batches"
    except TypeError:
        return "unknown length"


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
