"""Names for loaders that nobody named: the line of the user's code that makes them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from types import FrameType

import pipeprof

_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_OURS = os.path.dirname(os.path.abspath(pipeprof.__file__))

Call = tuple[str, int]
"""File and line."""


@dataclass
class _Place:
    """One way through the code that makes loaders."""

    names: list[str] = field(default_factory=list)
    made: int = 0
    """Loaders, since one of them was last iterated."""


class CallSites:
    """``train.py:42`` for a loader made there; ``train.py:42 #2`` for another made there.

    A loader made after its predecessor was iterated stands in its place, as in an epoch's loop or
    when a framework rebuilds it: it has the same name. One made before, as in
    ``[DataLoader(part) for part in parts]``, or made there by another call, is another.
    """

    def __init__(self, folder: str) -> None:
        """``folder`` is the script's: places in it are named from there."""
        self._folder = os.path.realpath(folder)
        self._places: dict[tuple[Call, ...], _Place] = {}
        self._of_name: dict[str, _Place] = {}

    def name(self, frame: FrameType | None, otherwise: str) -> str:
        """Of a loader that is being made in ``frame``; ``otherwise`` when no line of the user's
        led there."""
        calls = _calls(frame)
        place = self._places.setdefault(calls, _Place())
        if place.made == len(place.names):
            name = self._free(self._line(calls) or otherwise)
            place.names.append(name)
            self._of_name[name] = place
        place.made += 1
        return place.names[place.made - 1]

    def iterated(self, name: str) -> None:
        """The loader ``name`` is: whatever is made there from now on takes its place."""
        if name in self._of_name:
            self._of_name[name].made = 0

    def _free(self, line: str) -> str:
        name, count = line, 1
        while name in self._of_name:
            count += 1
            name = f"{line} #{count}"
        return name

    def _line(self, calls: tuple[Call, ...]) -> str | None:
        """The nearest line of the user's; of an installed script's own, when there is no other."""
        script = os.path.dirname(getattr(sys.modules["__main__"], "__file__", None) or "")
        lines = [call for call in calls if not _is_library(call[0])]
        lines += [call for call in calls if _within(call[0], script)]
        return f"{self._short(lines[0][0])}:{lines[0][1]}" if lines else None

    def _short(self, file: str) -> str:
        real = os.path.realpath(file)
        if _within(real, self._folder):
            return os.path.relpath(real, self._folder)
        return os.path.basename(file)


def _calls(frame: FrameType | None) -> tuple[Call, ...]:
    """From ``frame`` out to the script; ours, and what has no file, are left out."""
    calls = []
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<") and not _within(file, _OURS):
            calls.append((os.path.abspath(file), frame.f_lineno))
        frame = None if _is_script(frame) else frame.f_back
    return tuple(calls)


def _is_script(frame: FrameType) -> bool:
    """Beyond it is only who runs it."""
    return frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__"


def _is_library(file: str) -> bool:
    parts = file.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts or _within(file, _STANDARD_LIBRARY)


def _within(file: str, folder: str) -> bool:
    return file.startswith(folder + os.sep)
