"""The error tree.

    PipeprofError            everything pipeprof raises on purpose; exit code 1
    ├── UsageError           the call itself is wrong; exit code 2
    ├── StorageError         an object or folder cannot be listed or read
    │   └── NothingFound     the URL names nothing, or an empty folder
    ├── FormatError          bytes are not what their format demands
    │   ├── CorruptData      truncated or damaged
    │   └── SchemaMismatch   a column that is not there, a value of another type
    ├── OutputError          a result cannot be written
    ├── ProfileError         a file is not a profile that this version reads
    ├── StarvedError         starved beyond the limit the user set; exit code 3
    └── SlowerError          slower beyond the limit the user set; exit code 3

A message is one sentence or two: what was wrong, where, what to do. It never holds a secret.
"""

from __future__ import annotations


class PipeprofError(Exception):
    """The base of every error that pipeprof raises on purpose.

    A message is one or two sentences: what was wrong, where, and what to do. It never holds a
    secret. ``exit_code`` is what the command line ends with.

    Examples:
        >>> try:
        ...     profile = pipeprof.load("run.json")
        ... except pipeprof.PipeprofError as error:
        ...     print(error)
        run.json does not exist.
    """

    exit_code = 1


class UsageError(PipeprofError):
    """The call itself is wrong."""

    exit_code = 2


class StorageError(PipeprofError):
    """An object or folder cannot be listed or read."""


class NothingFound(StorageError):
    """The URL names nothing, or an empty folder."""


class FormatError(PipeprofError):
    """Bytes are not what their format demands."""


class CorruptData(FormatError):
    """Truncated or damaged."""


class SchemaMismatch(FormatError):
    """A column that is not there, or a value of another type."""


class OutputError(PipeprofError):
    """A result cannot be written."""


class ProfileError(PipeprofError):
    """A file is not a profile that this version reads."""


class StarvedError(PipeprofError):
    """Starved beyond the limit the user set."""

    exit_code = 3


class SlowerError(PipeprofError):
    """Slower beyond the limit the user set."""

    exit_code = 3
