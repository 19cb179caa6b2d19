"""Do something to a module as soon as somebody imports it, and not before: torch takes seconds to
import, fsspec a tenth of one, and a script may never need them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Act = Callable[[ModuleType], None]


Forget = Callable[[], None]


def when_imported(name: str, act: Act) -> Forget:
    """Call ``act`` with the module ``name`` once it is imported; at once if it is already. What is
    returned calls that off."""
    waiting = _Waiting(name, act)
    if name in sys.modules:
        act(sys.modules[name])
    else:
        sys.meta_path.insert(0, waiting)
    return waiting.forget


class _Waiting:
    """Stands first among Python's finders until its one module is imported."""

    def __init__(self, name: str, act: Act) -> None:
        self._name = name
        self._act = act

    def forget(self) -> None:
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec(fullname)  # of the other finders, whatever they are
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            self._act_after(spec.loader)
        return spec

    def _act_after(self, loader: Any) -> None:
        """Let ``loader``, which is for our module alone, act when it has executed that."""
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                self.forget()
                self._act(module)

        loader.exec_module = execute_and_act
