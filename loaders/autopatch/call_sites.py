"""Name loaders by the line of the user's code that creates them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from types import FrameType

from pipeprof.loaders.instrument.frames import is_library, is_ours, within

Call = tuple[str, int]
"""File and line of a frame."""


@dataclass
class _CallSite:
    """One call stack that creates loaders."""

    names: list[str] = field(default_factory=list)
    created: int = 0
    """Number of loaders created here since one of them was last iterated."""


class CallSites:
    """Names loaders: ``train.py:42`` for the first at that line, ``train.py:42 #2`` for the next.

    A loader that is created after its predecessor was iterated replaces it and has its name, as in
    a loop over epochs, or when a framework rebuilds it. A loader that is created before that, as in
    ``[DataLoader(part) for part in parts]``, or through other calls, has a name of its own.
    """

    def __init__(self, folder: str) -> None:
        """Name files in ``folder``, the script's, relative to it, and others by their base name."""
        self._folder = os.path.realpath(folder)
        self._sites: dict[tuple[Call, ...], _CallSite] = {}
        self._by_name: dict[str, _CallSite] = {}

    def name(self, frame: FrameType | None, default: str) -> str:
        """Return the name of a loader that is created in ``frame``. It begins with ``default``
        where no line of the user's code led there."""
        calls = _calls(frame)
        site = self._sites.setdefault(calls, _CallSite())
        if site.created == len(site.names):
            name = self._unused(self._line(calls) or default)
            site.names.append(name)
            self._by_name[name] = site
        site.created += 1
        return site.names[site.created - 1]

    def iterated(self, name: str) -> None:
        """Note that a loader is iterated: the next one created at its call site replaces it."""
        if name in self._by_name:
            self._by_name[name].created = 0

    def _unused(self, line: str) -> str:
        name, count = line, 1
        while name in self._by_name:
            count += 1
            name = f"{line} #{count}"
        return name

    def _line(self, calls: tuple[Call, ...]) -> str | None:
        """Return the nearest line outside libraries, else of the script if that is installed."""
        script = os.path.dirname(getattr(sys.modules["__main__"], "__file__", None) or "")
        lines = [call for call in calls if not is_library(call[0])]
        lines += [call for call in calls if within(call[0], script)]
        return f"{self._short(lines[0][0])}:{lines[0][1]}" if lines else None

    def _short(self, file: str) -> str:
        real = os.path.realpath(file)
        if within(real, self._folder):
            return os.path.relpath(real, self._folder)
        return os.path.basename(file)


def _calls(frame: FrameType | None) -> tuple[Call, ...]:
    """Return the calls from ``frame`` out to the script, without pipeprof's and generated code."""
    calls = []
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_ours(file):
            calls.append((os.path.abspath(file), frame.f_lineno))
        frame = None if _is_script(frame) else frame.f_back
    return tuple(calls)


def _is_script(frame: FrameType) -> bool:
    """Return whether ``frame`` is the script itself; frames beyond it belong to its runner."""
    return frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__"
