"""Replace functions of libraries once they are imported, and restore them.

A library is never imported here. Subclasses of a patched class that are made later are patched,
too.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from pipeprof.log import suppress_and_log
from pipeprof.measure.import_hook import Cancel, ImportHook

_log = logging.getLogger(__name__)

_ABSENT = object()
_replaced: list[tuple[Any, str, object, object]] = []
"""Each patch: owner, attribute, the original or `_ABSENT`, the replacement."""
_import_hooks: list[Cancel] = []
"""Functions that cancel the hooks on modules that are not imported yet."""

Replacement = tuple[Any, str, object]
"""An owner, the name of its attribute, and what is to be there instead."""
Patches = Mapping[str, Callable[[Any], Iterable[Replacement]]]
"""The name of a module, and what returns the replacements in it."""
Wrappers = Mapping[str, Callable[[Any], Any]]
"""A wrapper for each method, by its name."""


def prepare_patches(patches: Patches) -> Callable[[], None]:
    """Return a function that patches each module, now or once it is imported."""

    def replacements(module: ModuleType) -> list[Replacement]:
        with suppress_and_log(_log, f"reads through {module.__name__} are not recorded"):
            return list(patches[module.__name__](module))
        return []

    def patch(module: ModuleType) -> None:
        for each in replacements(module):
            replace(*each)

    # where an import is blocked, ``None`` stands in the place of a module
    imported = [name for name in patches if sys.modules.get(name) is not None]
    ready = [each for name in imported for each in replacements(sys.modules[name])]
    hook = ImportHook({name: patch for name in patches if name not in imported})

    def begin() -> None:
        for each in ready:
            replace(*each)
        _import_hooks.append(hook.cancel)
        hook.begin()

    return begin


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


def wrapped_methods(
    root: Any, wrappers: Wrappers, fits: Callable[[Any], bool] = is_synchronous
) -> Iterator[Replacement]:
    """Yield a wrapper for each method of ``root`` and its subclasses that ``fits``, and what wraps
    those of future subclasses."""

    def of_class(member: type) -> Iterator[Replacement]:
        for name, wrapper in wrappers.items():
            method = vars(member).get(name)
            if isinstance(method, FunctionType) and fits(method):
                yield member, name, wrapper(method)

    def patch_new(member: Any, /, **options: Any) -> None:
        super(root, member).__init_subclass__(**options)
        for each in of_class(member):
            replace(*each)

    for member in _with_subclasses(root):
        yield from of_class(member)
    yield root, "__init_subclass__", classmethod(patch_new)


def _with_subclasses(root: type) -> set[type]:
    return {root}.union(*map(_with_subclasses, root.__subclasses__()))
