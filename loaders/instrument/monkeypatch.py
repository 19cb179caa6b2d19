"""Patch foreign classes: wrap their methods, and observe the creation of their objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Method = Callable[..., Any]
MakeMethod = Callable[[Method], Method]


def wrap_method(cls: type, name: str, wrapper: MakeMethod, key: str) -> None:
    """Replace the method ``name`` of the `working_class` by ``wrapper(method)``, once for each
    ``key``."""
    owner = working_class(cls, name)
    if owner is not None:
        wrap_in(owner, name, wrapper, key)


def wrap_in(owner: type, name: str, wrapper: MakeMethod, key: str) -> None:
    """Replace the method that ``owner`` itself defines, once for each ``key``."""
    method: Any = vars(owner)[name]
    keys = getattr(method, "_pipeprofs_keys", ())
    if key not in keys:
        wrapped: Any = wrapper(method)
        wrapped._pipeprofs_keys = (*keys, key)
        setattr(owner, name, wrapped)


def working_class(cls: type, name: str) -> type | None:
    """Return the first class in the hierarchy of ``cls`` whose method ``name`` does not call its
    parent's, because that is where the work is done."""
    for owner in cls.__mro__:
        method = vars(owner).get(name)
        if method is not None:
            code = getattr(inspect.unwrap(method), "__code__", None)
            if code is None or name not in code.co_names:
                return owner
    return None


def observe_creation(base: Any, callback: Callable[[Any], None], key: str) -> None:
    """Call ``callback`` with each object of ``base`` or a subclass before it is initialised, once
    for each ``key``. That holds also where the ``__init__`` of a subclass does not call its
    parent's."""
    previous: Any = getattr(vars(base).get("__new__"), "__func__", None)
    keys = getattr(previous, "_pipeprofs_keys", ())
    if key in keys:
        return

    def observed_new(cls: type, *args: Any, **kwargs: Any) -> Any:
        new: Method = previous or super(base, cls).__new__
        created = new(cls) if new is object.__new__ else new(cls, *args, **kwargs)
        callback(created)
        return created

    # `inspect`, and frameworks that use it, must still find the arguments of the class
    observed_new.__signature__ = inspect.signature(base.__init__)  # type: ignore[attr-defined]
    observed_new._pipeprofs_keys = (*keys, key)  # type: ignore[attr-defined]
    base.__new__ = staticmethod(observed_new)
