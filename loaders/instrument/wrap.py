"""`pipeprof.wrap`: profile an existing loader while it is iterated."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from torch.utils.data import DataLoader

from pipeprof.errors import UsageError
from pipeprof.loaders.instrument.function_calls import (
    FunctionCalls,
    ProfiledFunction,
    function_name,
    is_function,
    profile_calls,
)
from pipeprof.loaders.instrument.inside import (
    being_measured,
    hook_class,
    loader_within,
    measure_inside,
    watch_rebuilds,
)
from pipeprof.loaders.instrument.iterator import Proxy
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.rebuilds import set_profiler
from pipeprof.log import suppress_and_log
from pipeprof.model import Profile, Recording

if TYPE_CHECKING:  # what draws or exports is imported only where it is asked for
    from pipeprof.loaders.live.live_pass import LiveLoader

_log = logging.getLogger(__name__)


@overload
def wrap(
    loader: Callable[..., Any],
    name: str = "",
    accelerator: str = "",
    whole: bool = False,
    live: bool = False,
    export: str | None = None,
    export_every: float = 15.0,
) -> ProfiledFunction: ...


@overload
def wrap(
    loader: Any,
    name: str = "",
    accelerator: str = "",
    whole: bool = False,
    live: bool = False,
    export: str | None = None,
    export_every: float = 15.0,
) -> ProfiledLoader: ...


def wrap(
    loader: Any,
    name: str = "",
    accelerator: str = "",
    whole: bool = False,
    live: bool = False,
    export: str | None = None,
    export_every: float = 15.0,
) -> ProfiledLoader | ProfiledFunction:
    """Profile a loader while it is iterated, without changing what it yields.

    Args:
        loader: A torch ``DataLoader``, or any iterable of batches. Of a generator, the DataLoader
            that it iterates is measured, or else what it does in the training loop's thread; of
            other iterables only the stages ``wait`` and ``step``. A function that returns a batch
            at each call is measured like a generator. Where gradients are on in some calls, the
            profile is of these.
        name: Shown in reports, to tell several loaders apart; by default that of a function, or
            ``loader``.
        accelerator: What consumes the batches, in words; reports show it. By default the name of
            the CUDA device in use, if any.
        whole: Record every batch. By default fast loaders are sampled, so that the profiler's
            overhead stays below 1 % of the run.
        live: Show the figures on stderr during the run: a panel at the bottom of a terminal, or a
            line every 10 s where stderr is no terminal.
        export: Where to send the figures of the last seconds: ``jsonl[:FILE]``,
            ``prometheus[:FILE or :PORT]`` or ``otlp[:URL]``.
        export_every: Seconds between two exports.

    Returns:
        A stand-in that behaves as ``loader`` and adds ``profile()``. A loader that is wrapped or
        tuned already is returned as it is.

    Raises:
        UsageError: ``loader`` cannot be iterated or called, or ``export`` names nothing known.
        OutputError: The file or the port of ``export`` cannot be used.

    Examples:
        >>> loader = pipeprof.wrap(loader)
        >>> for batch in loader:
        ...     train_step(batch)
        >>> print(loader.profile())

        >>> @pipeprof.wrap
        ... def get_batch(): ...
    """
    if issubclass(type(loader), (ProfiledLoader, ProfiledFunction)):
        profiled: ProfiledLoader | ProfiledFunction = loader
        return profiled

    def measured(batches: Any, name: str, shows: bool) -> ProfiledLoader:
        profiler = LoaderProfiler(name, accelerator, whole)
        if shows:
            profiler.live = live_loader(name, live, export, export_every)
        return stand_in(batches, profiler)

    if hasattr(type(loader), "__iter__"):
        return measured(loader, name or "loader", shows=True)
    if not is_function(loader):
        raise UsageError(
            "wrap() takes a DataLoader, another iterable of batches, or a function that returns a "
            f"batch, not {_kind_of(loader)}"
        )

    def measured_calls(calls: FunctionCalls, evaluates: bool) -> ProfiledLoader:
        label = name or function_name(loader)
        return measured(calls, f"{label} without gradients" if evaluates else label, not evaluates)

    return profile_calls(loader, measured_calls)


def _kind_of(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def live_loader(
    name: str, live: bool, export: str | None, export_every: float, in_parts: bool = False
) -> LiveLoader | None:
    """Return what is shown of a loader, as these arguments of `wrap` ask; ``None`` if nothing is.
    For ``in_parts`` see `LiveLoader`."""
    if not live and not export:
        return None
    from pipeprof.loaders.live.live_pass import LiveLoader
    from pipeprof.loaders.live.outputs import make_outputs

    return LiveLoader(name, make_outputs(live, export, export_every), in_parts)


def stand_in(loader: Any, profiler: LoaderProfiler) -> ProfiledLoader:
    """Return an object that behaves as ``loader``, and that ``profiler`` measures.

    Its class is its own, so that a framework which rebuilds a loader by ``type(loader)(…)`` has the
    new one measured, too.
    """
    kind = ProfiledGenerator if hasattr(type(loader), "__next__") else ProfiledLoader
    made: ProfiledLoader = object.__new__(class_like(loader, kind))
    type(made)._profiler_ref = weakref.ref(profiler)
    object.__setattr__(made, "_loader", loader)
    object.__setattr__(made, "_profiler", profiler)
    with suppress_and_log(_log, "a loader that a framework builds instead is not measured"):
        if isinstance(loader, DataLoader):
            set_profiler(made, profiler)
            hook_class(type(loader))
            watch_rebuilds()
    return made


Kind = TypeVar("Kind", bound="ProfiledLoader")


def class_like(loader: Any, kind: type[Kind]) -> type[Kind]:
    """Return a class for a stand-in of ``loader`` alone, which is a ``kind``."""
    names = {"__slots__": (), "__doc__": type(loader).__doc__, "_loader_class": type(loader)}
    return type(type(loader).__name__, (kind,), names)


class ProfiledLoader(Proxy):
    """The stand-in that `pipeprof.wrap` returns: the wrapped loader, with a profile."""

    __slots__ = ("_loader", "_profiler")
    _own_attributes: tuple[str, ...] = __slots__
    _loader: Any
    _profiler: LoaderProfiler
    _loader_class: ClassVar[Any]
    _profiler_ref: ClassVar[Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make another loader like the wrapped one, which has the same profile."""
        profiler = cls._profiler_ref() or LoaderProfiler("loader")
        return stand_in(cls._loader_class(*args, **kwargs), profiler)

    @property
    def __init__(self) -> Any:  # type: ignore[misc]
        """That of the wrapped loader, as frameworks read the names of its arguments."""
        return self._loader.__init__

    def _wrapped_object(self) -> Any:
        return self._loader

    def __iter__(self) -> Iterator[Any]:
        loader, profiler = self._loader, self._profiler
        inner = loader_within(loader)
        if inner is None:
            with being_measured(loader):
                return profiler.iterate(loader, partial(iter, loader))
        if issubclass(type(inner), ProfiledLoader):
            object.__setattr__(self, "_profiler", inner._profiler)
        else:
            measure_inside(inner, profiler)
        return iter(loader)

    def profile(self, threshold: float = 0.05) -> Profile:
        """Analyse all epochs so far.

        Args:
            threshold: The starved fraction, 0 to 1, from which the verdict is *starved*.

        Returns:
            The profile. It may be asked for again later, during or after training.
        """
        return self._profiler.profile(threshold)

    def recording(self) -> Recording:
        """Return the measurements of all epochs so far; of a long run, only the last batches."""
        return self._profiler.recording()

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name == "state_dict":  # torchdata's starts the workers if they are not running
            return partial(self._profiler.hooked_state_dict, self._loader, value)
        return value

    def __reduce__(self) -> Any:
        return stand_in, (self._loader, self._profiler)


class ProfiledGenerator(ProfiledLoader):
    """The stand-in for a loader that is its own iterator, such as a generator. `next` works on it
    as on the loader."""

    __slots__ = ("_open_pass",)
    _own_attributes = (*ProfiledLoader._own_attributes, "_open_pass")
    _open_pass: Iterator[Any] | None
    """The iterator that `next` advances; ``None`` or unset outside a pass."""

    def __iter__(self) -> Iterator[Any]:
        object.__setattr__(self, "_open_pass", None)
        return super().__iter__()

    def __next__(self) -> Any:
        open_pass = getattr(self, "_open_pass", None)
        iterator = super().__iter__() if open_pass is None else open_pass
        object.__setattr__(self, "_open_pass", iterator)
        try:
            return next(iterator)
        except StopIteration:
            object.__setattr__(self, "_open_pass", None)
            raise
