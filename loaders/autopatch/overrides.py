"""Implement ``--set``: other arguments for the DataLoaders of a script that is not edited."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import BoundArguments
from typing import Any, NamedTuple

from pipeprof.errors import UsageError

_NEED_WORKERS = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
    "timeout": 0,
}
"""Arguments that torch accepts only with workers, and their values without workers."""

_USAGE = "write it like num_workers=8,prefetch_factor=4 or train.py:42:num_workers=8"


class _ValueType(NamedTuple):
    """A type of argument: a pattern of valid text, a parser, and what to say of other text."""

    pattern: str
    parse: Callable[[str], Any]
    refusal: str


_BOOL = _ValueType(
    "(?ai:true|yes|1|false|no|0)",
    lambda text: text.lower() in ("true", "yes", "1"),
    "is neither true nor false",
)
_FROM_0 = _ValueType("[0-9]{1,9}", int, "is not a whole number of 0 or more")
_FROM_1 = _ValueType("(?=.{1,9}$)0*[1-9][0-9]*", int, "is not a whole number of 1 or more")
_SECONDS = _ValueType(r"[0-9]+(\.[0-9]*)?", float, "is not a number of seconds, 0 or more")
_START_METHOD = _ValueType("fork|forkserver|spawn", str, "is none of fork, forkserver, spawn")
_ARGUMENTS = {
    "num_workers": _FROM_0,
    "prefetch_factor": _FROM_1,
    "batch_size": _FROM_1,
    "pin_memory": _BOOL,
    "persistent_workers": _BOOL,
    "in_order": _BOOL,
    "multiprocessing_context": _START_METHOD,
    "timeout": _SECONDS,
}
"""The arguments that can be set."""


@dataclass(frozen=True)
class Override:
    """Arguments that replace a script's own."""

    text: str
    """As the user wrote it."""
    place: str | None
    """A name of `CallSites`, or a file for all loaders in it; ``None`` for all loaders."""
    arguments: Mapping[str, Any]

    def applies_to(self, name: str) -> bool:
        """Return whether it applies to the loader that `CallSites` calls ``name``."""
        return self.place in (None, name, name.rpartition(":")[0])


def parse_override(text: str) -> Override:
    """Parse ``num_workers=8,prefetch_factor=4``, with or without ``train.py:42:`` before it. Raises
    `UsageError`."""
    before, equals, _ = text.partition("=")
    place, colon, _ = before.rpartition(":")
    arguments: dict[str, Any] = {}
    for setting in text[len(place + colon) :].split(","):
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise UsageError(f"{text!r} sets nothing; {_USAGE}")
        if name not in _ARGUMENTS:
            raise UsageError(f"{name!r} cannot be set; what can: {', '.join(_ARGUMENTS)}")
        if name in arguments:
            raise UsageError(f"{text!r} sets {name} twice")
        value_type = _ARGUMENTS[name]
        if not re.fullmatch(value_type.pattern, value):
            raise UsageError(f"{name}={value} {value_type.refusal}")
        arguments[name] = value_type.parse(value)
    return Override(text, place.strip() or None, arguments)


def merge_overrides(overrides: Sequence[Override], name: str) -> dict[str, Any]:
    """Return the arguments to set for loader ``name``; the most specific place has precedence."""
    wanted: dict[str, Any] = {}
    for each in sorted(overrides, key=lambda each: len(each.place or "")):
        if each.applies_to(name):
            wanted |= each.arguments
    return wanted


def override_call(
    call: BoundArguments, wanted: Mapping[str, Any]
) -> tuple[BoundArguments, tuple[str, ...]]:
    """Return a call of ``DataLoader.__init__`` with other arguments, and notes for the report."""
    defaults = {key: each.default for key, each in call.signature.parameters.items()}
    changes, notes = override_arguments({**defaults, **call.arguments}, wanted)
    call.arguments.update(changes)
    return call, notes


def override_arguments(
    given: Mapping[str, Any], wanted: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what to change in the arguments of a DataLoader, and notes for the report. ``given``
    are the script's arguments with all defaults. They become as ``wanted`` as torch allows. There
    is a note on the changes, and one on each argument that was refused."""
    changes, notes = {}, []
    for name, value in wanted.items():
        refusal = _refusal(name, given)
        if refusal:
            notes.append(f"--set {name}={_text(value)} was left out: {refusal}")
        else:
            changes[name] = value
    if not changes.get("num_workers", given.get("num_workers", 0)):
        for name, default in _NEED_WORKERS.items():
            if changes.pop(name, default) != default:
                notes.append(f"--set {name} was left out: it needs workers")
            if "num_workers" in changes and name in given:
                changes[name] = default
    changes = {name: value for name, value in changes.items() if _differ(given[name], value)}
    replaced = [f"{name} {_text(given[name])} → {_text(changes[name])}" for name in changes]
    if replaced:
        notes.insert(0, f"--set replaced {', '.join(replaced)}")
    return changes, tuple(notes)


def _refusal(name: str, given: Mapping[str, Any]) -> str | None:
    if name not in given:
        return "this DataLoader takes no such argument"
    if name == "batch_size" and given.get("batch_sampler") is not None:
        return "the script's batch_sampler makes the batches"
    if name == "batch_size" and given["batch_size"] is None:
        return "the script's data set makes the batches"
    return None


def _differ(one: Any, other: Any) -> bool:
    return bool(one != other) and _text(one) != _text(other)


def _text(value: Any) -> str:
    """Return ``value`` as text; a multiprocessing context by the name of its start method."""
    method = getattr(value, "get_start_method", None)
    return str(method() if method is not None else value)
