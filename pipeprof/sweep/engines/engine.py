"""Define what runs the trials of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from pipeprof.errors import PipeprofError
from pipeprof.model import Environment

T = TypeVar("T")


class Engine(Protocol):
    """Runs one function after another."""

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return what ``function`` returns, or raise its `PipeprofError`. Raises `StorageError`
        where the node or its process has died."""
        ...

    def close(self) -> None: ...


class Here:
    """Runs everything in this process."""

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        return function(*arguments)

    def close(self) -> None:
        pass


HERE: Engine = Here()


def carried_out(
    function: Callable[..., T], arguments: tuple[object, ...]
) -> tuple[T | None, PipeprofError | None]:
    """Call ``function`` on a node, and return its result or its error. Engines wrap whatever a
    function raises, and a user's mistake is to be shown as it is."""
    try:
        return function(*arguments), None
    except PipeprofError as error:
        return None, error


def result_of(answer: tuple[T | None, PipeprofError | None]) -> T:
    """Return the result in an answer of `carried_out`, or raise its error."""
    value, error = answer
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # None only where the function returned it


def other_node(first: Environment, then: Environment) -> Iterator[str]:
    """Yield a note where a trial ran on another host than the sweep began on, and how that one
    differs: throughputs of unlike machines do not compare."""
    if then.host is None or then.host == first.host:
        return
    unlike = [
        f"{words} {getattr(first, name):,} and {getattr(then, name):,}"
        for name, words in {"cores": "cores", "ram_bytes": "bytes of RAM"}.items()
        if getattr(first, name) and getattr(then, name) != getattr(first, name)
    ]
    differ = f", which differ: {', '.join(unlike)}" if unlike else " of the same size"
    yield f"Trials ran on {first.host} and {then.host}{differ}."
