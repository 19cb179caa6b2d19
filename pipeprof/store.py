"""Profiles and sweeps on disk: JSON by orjson, checked on the way in, atomic on the way out."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import orjson

from pipeprof.errors import OutputError, ProfileError
from pipeprof.model import PROFILE_SCHEMA, SWEEP_SCHEMA, Profile, SweepResult

_TYPES: dict[str, type[Profile] | type[SweepResult]] = {
    PROFILE_SCHEMA: Profile,
    SWEEP_SCHEMA: SweepResult,
}


def dumps(result: Profile | SweepResult) -> bytes:
    return orjson.dumps(asdict(result), option=orjson.OPT_INDENT_2) + b"\n"


def loads(data: bytes, where: str = "the data") -> Profile | SweepResult:
    """Raises `ProfileError` when ``data`` is anything but a profile or sweep of this version."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ProfileError(f"{where} is not JSON, or is cut short ({error}).") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith("pipeprof."):
        raise ProfileError(
            f"{where} is JSON, but not a profile or sweep of pipeprof; "
            f'those have "schema": "{PROFILE_SCHEMA}" or "{SWEEP_SCHEMA}".'
        )
    if schema not in _TYPES:
        raise ProfileError(
            f"{where} has schema {schema!r}; this version of pipeprof reads "
            f"{PROFILE_SCHEMA} and {SWEEP_SCHEMA}. Open it with the version that wrote it."
        )
    try:
        return msgspec.convert(document, _TYPES[schema])
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where} says it is {schema}, but it is not: {error}.") from None


def load(path: str | PathLike[str]) -> Profile | SweepResult:
    """Read a saved profile or sweep. Raises `ProfileError`."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise ProfileError(f"{os.fspath(path)} does not exist.") from None
    except OSError as error:
        raise ProfileError(f"{os.fspath(path)} cannot be read: {error.strerror}.") from None
    return loads(data, os.fspath(path))


def save(result: Profile | SweepResult, path: str | PathLike[str]) -> None:
    """Write ``result`` whole or not at all. Raises `OutputError`."""
    write_atomically(path, dumps(result))


def write_atomically(path: str | PathLike[str], data: bytes) -> None:
    """Temporary file beside ``path``, fsync, rename. Raises `OutputError`."""
    target = Path(path)
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise OutputError(f"{target} cannot be written: {error.strerror}.") from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a type of `pipeprof.model`, without descriptions."""
    return msgspec.json.schema(kind)
