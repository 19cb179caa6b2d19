"""Profile a function that returns a batch at each call, as it is called.

To the profiler the calls are the batches of a generator. Calls without gradients are an evaluation
where others have gradients, and then a profile of their own: the training pauses meanwhile.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from types import MethodType
from typing import Any, Protocol

import torch

from pipeprof.errors import UsageError
from pipeprof.loaders.instrument.iterator import Proxy
from pipeprof.model import Profile, Recording

_LEAST_EVALUATION = 2
"""Calls without gradients, one after another, that are an evaluation. A single one may be part of
each training step."""


def function_name(function: Any) -> str:
    """Return the name of a function, a method or a ``functools.partial`` of one."""
    inner = getattr(function, "func", function)
    return str(getattr(inner, "__name__", type(inner).__name__))


def is_function(value: Any) -> bool:
    """Return whether ``value`` is called for a batch. Raises `UsageError` where a call certainly
    returns something else."""
    if not callable(value) or isinstance(value, (type, torch.nn.Module)):
        return False
    name = function_name(value)
    if inspect.isgeneratorfunction(value):
        raise UsageError(
            f"{name} is a generator function, which returns no batch: wrap what it returns, "
            f"pipeprof.wrap({name}(…))"
        )
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        raise UsageError(f"{name} is an async function: pipeprof measures no event loops")
    return True


def _itself(function: Any) -> Any:
    return function


class FunctionCalls:
    """The calls of ``function``, as an iterator. Whoever asks for the next one sets ``arguments``
    before. It is no generator, which would turn a ``StopIteration`` into a `RuntimeError`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.arguments: tuple[tuple[Any, ...], Mapping[str, Any]] = (), {}

    def __iter__(self) -> FunctionCalls:
        return self

    def __next__(self) -> Any:
        args, kwargs = self.arguments
        return self._function(*args, **kwargs)


class CallsProfile(Protocol):
    """What measures the calls of one kind: a wrapped `FunctionCalls`."""

    def __iter__(self) -> Iterator[Any]: ...

    def profile(self, threshold: float) -> Profile: ...

    def recording(self) -> Recording: ...


class _Series:
    """Calls one after another, which are measured as one epoch until they are closed."""

    def __init__(self, calls: FunctionCalls, profiled: CallsProfile) -> None:
        self.profiled = profiled
        self.count = 0
        """Batches since the series began."""
        self.began = False
        """Whether there was a batch in this or an earlier one."""
        self._calls = calls
        self._iterator: Iterator[Any] | None = None

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function. An error of it ends the series."""
        self._calls.arguments = args, kwargs
        try:
            if self._iterator is None:
                self._iterator = iter(self.profiled)
            batch = next(self._iterator)
        except BaseException:
            self.close()
            raise
        finally:
            self._calls.arguments = (), {}  # whose arguments live as long as without us
        self.count += 1
        self.began = True
        return batch

    def close(self) -> None:
        """End the series; the next call begins another."""
        self._iterator, self.count = None, 0


def profile_calls(
    function: Callable[..., Any], profiled: Callable[[FunctionCalls, bool], CallsProfile]
) -> ProfiledFunction:
    """Return a stand-in for ``function``, with its documentation. ``profiled`` wraps its calls; its
    second argument says whether they are those without gradients."""
    names = {"__slots__": (), "__doc__": function.__doc__, "__module__": function.__module__}
    kind: type[ProfiledFunction] = type(function_name(function), (ProfiledFunction,), names)
    return kind(function, profiled)


class ProfiledFunction(Proxy):
    """The stand-in for a function that `pipeprof.wrap` returns: the function, with a profile."""

    __slots__ = _own_attributes = ("_evaluation", "_function", "_lock", "_training")
    _function: Callable[..., Any]
    _training: _Series
    _evaluation: _Series
    _lock: Any

    def __init__(
        self, function: Callable[..., Any], profiled: Callable[[FunctionCalls, bool], CallsProfile]
    ) -> None:
        """See `profile_calls`."""
        for name, evaluates in (("_training", False), ("_evaluation", True)):
            calls = FunctionCalls(function)
            object.__setattr__(self, name, _Series(calls, profiled(calls, evaluates)))
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "_lock", Lock())

    def _wrapped_object(self) -> Any:
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._lock.acquire(blocking=False):  # it calls itself, or two threads call it
            return self._function(*args, **kwargs)
        try:
            if not torch.is_grad_enabled():
                return self._evaluation.call(args, kwargs)
            if self._evaluation.count >= _LEAST_EVALUATION:
                self._evaluation.close()
            return self._training.call(args, kwargs)
        finally:
            self._lock.release()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a function in the body of a class, it becomes a method."""
        return self if instance is None else MethodType(self, instance)

    def __deepcopy__(self, memo: Any) -> ProfiledFunction:
        return self  # as of any function

    def __reduce__(self) -> Any:
        """Another process gets the function itself, or what its module has in its place."""
        function = self._function
        place = sys.modules.get(function.__module__)
        if getattr(place, function_name(function), None) is self:
            return function_name(function)
        return _itself, (function,)

    def profile(self, threshold: float = 0.05) -> Profile:
        """Analyse all calls so far with gradients; where there are none, those without.

        Args:
            threshold: The starved fraction, 0 to 1, from which the verdict is *starved*.

        Returns:
            The profile. It may be asked for again later, during or after training.
        """
        return self._shown.profile(threshold)

    def recording(self) -> Recording:
        """Return the measurements of all calls that `profile` analyses."""
        return self._shown.recording()

    @property
    def _shown(self) -> CallsProfile:
        evaluates_only = self._evaluation.began and not self._training.began
        return (self._evaluation if evaluates_only else self._training).profiled
