"""Patch foreign classes: wrap their methods, and observe the creation of their objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Method = Callable[..., Any]


def wrap_method(cls: type, name: str, wrapper: Callable[[Method], Method]) -> None:
    """Replace the method ``name`` of ``cls`` by ``wrapper(method)``, once. The method is replaced
    in the first class of the hierarchy in which it does not call its parent's, because that is
    where the work is done."""
    for owner in cls.__mro__:
        method = vars(owner).get(name)
        if method is None:
            continue
        if getattr(method, "_is_pipeprofs", False):
            return
        code = getattr(inspect.unwrap(method), "__code__", None)
        if code is not None and name in code.co_names:
            continue
        wrapped: Any = wrapper(method)
        wrapped._is_pipeprofs = True
        setattr(owner, name, wrapped)
        return


def observe_creation(base: Any, callback: Callable[[Any], None]) -> None:
    """Call ``callback`` with each object of ``base`` or a subclass before it is initialised. That
    holds also where the ``__init__`` of a subclass does not call its parent's."""

    def observed_new(cls: type, *args: Any, **kwargs: Any) -> Any:
        new: Method = super(base, cls).__new__
        created = new(cls) if new is object.__new__ else new(cls, *args, **kwargs)
        callback(created)
        return created

    # `inspect`, and frameworks that use it, must still find the arguments of the class
    observed_new.__signature__ = inspect.signature(base.__init__)  # type: ignore[attr-defined]
    base.__new__ = staticmethod(observed_new)
