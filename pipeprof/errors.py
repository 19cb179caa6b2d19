"""Define the exceptions that pipeprof raises.

    PipeprofError            base class; exit code 1
    ├── UsageError           the call itself is wrong; exit code 2
    ├── StorageError         an object or folder cannot be listed or read
    │   └── NothingFound     a URL without any object
    ├── FormatError          bytes violate their format
    │   ├── CorruptData      truncated or damaged data
    │   └── SchemaMismatch   a missing column, or a value of an unexpected type
    ├── OutputError          a result cannot be written
    ├── ProfileError         a file is not a profile that this version can read
    ├── StarvedError         starved beyond the user's limit; exit code 3
    └── SlowerError          slower beyond the user's limit; exit code 3

A message has one or two sentences: what is wrong, where, and what to do. It never holds a secret.
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
    """Raised when the call itself is wrong."""

    exit_code = 2


class StorageError(PipeprofError):
    """Raised when an object or folder cannot be listed or read."""


class NothingFound(StorageError):
    """Raised when a URL names no object, or an empty folder."""


class FormatError(PipeprofError):
    """Raised when bytes violate their format."""


class CorruptData(FormatError):
    """Raised when data are truncated or damaged."""


class SchemaMismatch(FormatError):
    """Raised when a column is missing, or a value has an unexpected type."""


class OutputError(PipeprofError):
    """Raised when a result cannot be written."""


class ProfileError(PipeprofError):
    """Raised when a file is not a profile that this version can read."""


class StarvedError(PipeprofError):
    """Raised when the starved fraction exceeds the user's limit."""

    exit_code = 3


class SlowerError(PipeprofError):
    """Raised when a run is slower than the user's limit allows."""

    exit_code = 3
