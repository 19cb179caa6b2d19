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
    hook = ImportHook({name: act})
    if name in sys.modules:
        act(sys.modules[name])
    else:
        hook.begin()
    return hook.cancel


class ImportHook:
    """The first of Python's finders from `begin` on, until its modules are imported."""

    def __init__(self, acts: dict[str, Act]) -> None:
        self._acts = acts

    def begin(self) -> None:
        if self._acts:
            sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        self._acts.clear()
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname not in self._acts:
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec(fullname)  # by the other finders
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            self._act_after(spec.loader, fullname)
        return spec

    def _act_after(self, loader: Any, name: str) -> None:
        """Let ``loader``, which is for the module ``name`` alone, act after executing it."""
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            act = self._acts.pop(name, None)
            if not self._acts:
                self.cancel()
            if act is not None:
                act(module)

        loader.exec_module = execute_and_act
