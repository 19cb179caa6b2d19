"""Change a class that is not ours: put something around its methods, and be told of its objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Method = Callable[..., Any]


def put_around(cls: type, name: str, around: Callable[[Method], Method]) -> None:
    """Put something around the method of ``cls`` in which the work is done: the nearest that does
    not call its parent's. Done once, however often it is asked for."""
    for owner in cls.__mro__:
        method = vars(owner).get(name)
        if method is None:
            continue
        if getattr(method, "_is_pipeprofs", False):
            return
        code = getattr(inspect.unwrap(method), "__code__", None)
        if code is not None and name in code.co_names:
            continue
        changed: Any = around(method)
        changed._is_pipeprofs = True
        setattr(owner, name, changed)
        return


def note_objects(base: Any, note: Callable[[Any], None]) -> None:
    """Call ``note`` with each object of ``base`` and of its subclasses before it is initialised,
    also where a subclass's ``__init__`` calls no other."""

    def noted_new(cls: type, *args: Any, **kwargs: Any) -> Any:
        make: Method = super(base, cls).__new__
        made = make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
        note(made)
        return made

    # so that `inspect`, and whoever relies on it, still sees the arguments of the class
    noted_new.__signature__ = inspect.signature(base.__init__)  # type: ignore[attr-defined]
    base.__new__ = staticmethod(noted_new)
