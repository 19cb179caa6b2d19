"""Replace functions of libraries once they are imported, and restore them.

A library is never imported here. Subclasses of a patched class that are made later are patched,
too.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from pipeprof.log import suppress_and_log
from pipeprof.measure.import_hook import Cancel, when_each_imported

_log = logging.getLogger(__name__)

_ABSENT = object()
_replaced: list[tuple[Any, str, object, object]] = []
"""Each patch: owner, attribute, the original or `_ABSENT`, the replacement."""
_import_hooks: list[Cancel] = []
"""Functions that cancel the hooks on modules that are not imported yet."""

Patches = Mapping[str, Callable[[Any], None]]
"""The name of a module, and what patches it."""
Wrappers = dict[str, Callable[[Any], Any]]
"""A wrapper for each method, by its name."""


def patch_when_imported(patches: Patches) -> None:
    """Patch each module now, or once it is imported."""

    def patch(module: ModuleType) -> None:
        with suppress_and_log(_log, f"reads through {module.__name__} are not recorded"):
            patches[module.__name__](module)

    _import_hooks.append(when_each_imported(dict.fromkeys(patches, patch)))


def restore_all() -> None:
    """Restore all originals, except where another library has replaced our patch since."""
    while _import_hooks:
        _import_hooks.pop()()
    while _replaced:
        owner, name, original, ours = _replaced.pop()
        if vars(owner).get(name) is not ours:
            continue
        if original is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, original)


def replace(owner: Any, name: str, value: object) -> None:
    _replaced.append((owner, name, vars(owner).get(name, _ABSENT), value))
    setattr(owner, name, value)


def is_synchronous(method: Any) -> bool:
    return not inspect.iscoroutinefunction(method)


def patch_classes(
    root: Any, wrappers: Wrappers, fits: Callable[[Any], bool] = is_synchronous
) -> None:
    """Wrap the methods of ``root`` and its subclasses, future ones included, where ``fits``."""

    def patch(member: type) -> None:
        for name, wrapper in wrappers.items():
            method = vars(member).get(name)
            if isinstance(method, FunctionType) and fits(method):
                replace(member, name, wrapper(method))

    def patch_new(member: Any, /, **options: Any) -> None:
        super(root, member).__init_subclass__(**options)
        patch(member)

    for member in _with_subclasses(root):
        patch(member)
    replace(root, "__init_subclass__", classmethod(patch_new))


def _with_subclasses(root: type) -> set[type]:
    return {root}.union(*map(_with_subclasses, root.__subclasses__()))
