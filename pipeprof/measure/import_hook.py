"""Act on a module as soon as it is imported, and never import it here.

Importing torch takes seconds, fsspec a tenth of one, and a script may need neither.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Act = Callable[[ModuleType], None]
Cancel = Callable[[], None]


def when_imported(name: str, act: Act) -> Cancel:
    """Call ``act`` with the module ``name`` once it is imported, or now if it already is. Returns a
    function that cancels this."""
    finder = _ActingFinder(name, act)
    if name in sys.modules:
        act(sys.modules[name])
    else:
        sys.meta_path.insert(0, finder)
    return finder.cancel


class _ActingFinder:
    """The first of Python's finders, until its one module is imported."""

    def __init__(self, name: str, act: Act) -> None:
        self._name = name
        self._act = act

    def cancel(self) -> None:
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec(fullname)  # by the other finders
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            self._act_after(spec.loader)
        return spec

    def _act_after(self, loader: Any) -> None:
        """Let ``loader``, which is for our module alone, act after executing it."""
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                self.cancel()
                self._act(module)

        loader.exec_module = execute_and_act
