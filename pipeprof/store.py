"""Read and write profiles and sweeps as JSON files. Reading validates them; writing is atomic."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path

import msgspec
import orjson

from pipeprof.atomic import whole_file, write_all
from pipeprof.errors import OutputError, ProfileError
from pipeprof.model import PROFILE_SCHEMA, SWEEP_SCHEMA, Profile, SweepResult

SWEEP_FILE = "sweep.json"
"""Name of the file in the folder of a sweep."""

_TYPES: dict[str, type[Profile] | type[SweepResult]] = {
    PROFILE_SCHEMA: Profile,
    SWEEP_SCHEMA: SweepResult,
}
# `Stage` is a str and `numpy.float64` a float, so both are valid values
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


class _Declared(msgspec.Struct):
    """What a file says that it is."""

    schema: str = ""


def dumps(result: Profile | SweepResult) -> bytes:
    """Return ``result`` as JSON. Raises `OutputError` for text that is not Unicode.

    Raises ValueError for NaN or infinity: JSON has neither, and null would be read back as unknown.
    """
    document = asdict(result)
    for place in _not_finite(document, type(result).__name__):
        raise ValueError(f"{place}, which cannot be saved")
    try:
        return orjson.dumps(document, option=_OPTIONS) + b"\n"
    except orjson.JSONEncodeError as error:
        raise OutputError(f"{result.schema} cannot be written as JSON: {error}.") from None


def _not_finite(value: object, where: str) -> Iterator[str]:
    """Yield a message for each NaN or infinity in ``value``, such as ``"Profile.blame.read is
    nan"``."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield f"{where} is {value}"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _not_finite(item, f"{where}.{key}")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _not_finite(item, f"{where}[{index}]")


def loads(data: bytes, where: str = "the data") -> Profile | SweepResult:
    """Return the profile or sweep in ``data``. Raises `ProfileError` for anything else."""
    try:
        schema = _written_last(data) or msgspec.json.decode(data, type=_Declared).schema
    except msgspec.ValidationError:  # a list, or another type of schema
        schema = ""
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{where} is not JSON, or is cut short ({error}).") from None
    if not schema.startswith("pipeprof."):
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
        return msgspec.json.decode(data, type=_TYPES[schema])
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where} says it is {schema}, but it is not: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{where} is not JSON, or is cut short ({error}).") from None


def _written_last(data: bytes) -> str:
    """Return the schema that `dumps` writes last, without reading the rest; empty for none."""
    ends = (name for name in _TYPES if data.endswith(f'"schema":"{name}"}}\n'.encode()))
    return next(ends, "")


def load(path: str | PathLike[str]) -> Profile | SweepResult:
    """Read a saved profile or sweep.

    Args:
        path: A file that `Profile.save`, `pipeprof run` or `pipeprof sweep` wrote, of this version
            or an older one. Fields that an older version did not measure are ``None``.

    Returns:
        A `Profile` or a `SweepResult`, as the file declares.

    Raises:
        ProfileError: The file does not exist, is damaged, or holds something else.

    Examples:
        >>> profile = pipeprof.load("run.json")
        >>> profile.diagnosis.verdict
        'starved'
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise ProfileError(f"{os.fspath(path)} does not exist.") from None
    except OSError as error:
        raise ProfileError(f"{os.fspath(path)} cannot be read: {error.strerror}.") from None
    return loads(data, os.fspath(path))


def save(result: Profile | SweepResult, path: str | PathLike[str]) -> None:
    """Write ``result`` to ``path`` atomically. Raises `OutputError`."""
    write_atomically(path, dumps(result))


def write_atomically(path: str | PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path``: complete, or not at all. Raises `OutputError`."""
    # follow links, as an ordinary write does: the link stays, and its target is replaced
    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not os.path.isfile(target):  # Path.exists raises on long names
        raise OutputError(f"{os.fspath(path)} cannot be written: it is not a regular file.")
    try:
        with whole_file(target) as file:
            write_all(file, data)
    except OSError as error:
        raise OutputError(f"{os.fspath(path)} cannot be written: {error.strerror}.") from None
