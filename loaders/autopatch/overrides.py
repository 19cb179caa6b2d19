"""`--set`: other arguments for the DataLoaders that a script makes, without an edit of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipeprof.errors import UsageError

_NEED_WORKERS = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
    "timeout": 0,
}
"""Arguments that torch takes with workers only, and what it takes without."""

_FORM = "write it like num_workers=8,prefetch_factor=4 or train.py:42:num_workers=8"


class _Kind(NamedTuple):
    """Of values: what their text looks like, what it stands for, and what else it is."""

    pattern: str
    parse: Callable[[str], Any]
    refusal: str


_TRUTH = _Kind(
    "(?ai:true|yes|1|false|no|0)",
    lambda text: text.lower() in ("true", "yes", "1"),
    "is neither true nor false",
)
_FROM_0 = _Kind("[0-9]{1,9}", int, "is not a whole number of 0 or more")
_FROM_1 = _Kind("(?=.{1,9}$)0*[1-9][0-9]*", int, "is not a whole number of 1 or more")
_SECONDS = _Kind(r"[0-9]+(\.[0-9]*)?", float, "is not a number of seconds, 0 or more")
_START_METHOD = _Kind("fork|forkserver|spawn", str, "is none of fork, forkserver, spawn")
_KINDS = {
    "num_workers": _FROM_0,
    "prefetch_factor": _FROM_1,
    "batch_size": _FROM_1,
    "pin_memory": _TRUTH,
    "persistent_workers": _TRUTH,
    "in_order": _TRUTH,
    "multiprocessing_context": _START_METHOD,
    "timeout": _SECONDS,
}
"""What can be set."""


@dataclass(frozen=True)
class Override:
    """Arguments to put in the place of a script's own."""

    text: str
    """As the user wrote it."""
    place: str | None
    """``train.py:42``, ``train.py:42 #2`` or, for all in a file, ``train.py``; ``None``: all."""
    arguments: Mapping[str, Any]

    def is_for(self, name: str) -> bool:
        """Whether it is for the loader that was given ``name`` by its place."""
        return self.place in (None, name, name.rpartition(":")[0])


def parse_override(text: str) -> Override:
    """Of ``num_workers=8,prefetch_factor=4``, with or without ``train.py:42:`` before it. Raises
    `UsageError`."""
    before, equals, _ = text.partition("=")
    place, colon, _ = before.rpartition(":")
    arguments: dict[str, Any] = {}
    for setting in text[len(place + colon) :].split(","):
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise UsageError(f"{text!r} sets nothing; {_FORM}")
        if name not in _KINDS:
            raise UsageError(f"{name!r} cannot be set; what can: {', '.join(_KINDS)}")
        if name in arguments:
            raise UsageError(f"{text!r} sets {name} twice")
        kind = _KINDS[name]
        if not re.fullmatch(kind.pattern, value):
            raise UsageError(f"{name}={value} {kind.refusal}")
        arguments[name] = kind.parse(value)
    return Override(text, place.strip() or None, arguments)


def merged(overrides: Sequence[Override], name: str) -> dict[str, Any]:
    """Of those for the loader ``name``; one for its very place counts before one for all."""
    wanted: dict[str, Any] = {}
    for each in sorted(overrides, key=lambda each: len(each.place or "")):
        if each.is_for(name):
            wanted |= each.arguments
    return wanted


def override(
    given: Mapping[str, Any], wanted: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What to change of the arguments ``given`` to a DataLoader, defaults among them, so that they
    are as ``wanted`` as torch allows; and a line for the report on each change and refusal."""
    changes, notes = {}, []
    for name, value in wanted.items():
        refusal = _refusal(name, given)
        if refusal:
            notes.append(f"--set {name}={_shown(value)} was left out: {refusal}")
        else:
            changes[name] = value
    if not changes.get("num_workers", given.get("num_workers", 0)):
        for name, without in _NEED_WORKERS.items():
            if changes.pop(name, without) != without:
                notes.append(f"--set {name} was left out: it needs workers")
            if "num_workers" in changes and name in given:
                changes[name] = without
    changes = {name: value for name, value in changes.items() if _differ(given[name], value)}
    replaced = [f"{name} {_shown(given[name])} → {_shown(changes[name])}" for name in changes]
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
    return bool(one != other) and _shown(one) != _shown(other)


def _shown(value: Any) -> str:
    """Start methods by their name; torch takes a context too."""
    method = getattr(value, "get_start_method", None)
    return str(method() if method is not None else value)
