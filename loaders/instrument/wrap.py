"""`pipeprof.wrap`: profile an existing loader while it is iterated."""

from __future__ import annotations

from functools import partial
from typing import Any

from pipeprof.errors import UsageError
from pipeprof.loaders.instrument.iterator import ProfiledIterator, Proxy
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.model import Profile, Recording


def wrap(
    loader: Any,
    name: str = "loader",
    accelerator: str = "not observed",
    whole: bool = False,
    live: bool = False,
) -> ProfiledLoader:
    """Profile a loader while it is iterated, without changing what it yields.

    Args:
        loader: A torch ``DataLoader``, or any iterable of batches. For other iterables only the
            stages ``wait`` and ``step`` are measured.
        name: Shown in reports, to tell several loaders apart.
        accelerator: What consumes the batches, in words; reports show it.
        whole: Record every batch. By default fast loaders are sampled, so that the profiler's
            overhead stays below 1 % of the run.
        live: Show the figures on stderr during the run: a panel at the bottom of a terminal, or a
            line every 10 s where stderr is no terminal.

    Returns:
        A stand-in that behaves as ``loader`` and adds ``profile()``. A loader that is wrapped
        already is returned as it is.

    Raises:
        UsageError: ``loader`` cannot be iterated.

    Examples:
        >>> loader = pipeprof.wrap(loader)
        >>> for batch in loader:
        ...     train_step(batch)
        >>> print(loader.profile())
    """
    if issubclass(type(loader), ProfiledLoader):
        profiled: ProfiledLoader = loader
        return profiled
    if not hasattr(type(loader), "__iter__"):
        raise UsageError(
            f"wrap() takes a DataLoader or another iterable of batches, not {type(loader).__name__}"
        )
    kind = ProfiledGenerator if hasattr(type(loader), "__next__") else ProfiledLoader
    profiler = LoaderProfiler(name, accelerator, whole)
    if live:
        from pipeprof.loaders.live.view import live_view

        profiler.live = live_view()
    return kind(loader, profiler)


class ProfiledLoader(Proxy):
    """The stand-in that `pipeprof.wrap` returns: the wrapped loader, with a profile."""

    _own_attributes: tuple[str, ...] = ("_loader", "_profiler")
    _loader: Any
    _profiler: LoaderProfiler

    def __init__(self, loader: Any, profiler: LoaderProfiler) -> None:
        object.__setattr__(self, "_loader", loader)
        object.__setattr__(self, "_profiler", profiler)

    def _wrapped_object(self) -> Any:
        return self._loader

    def __iter__(self) -> ProfiledIterator:
        loader = self._loader
        return self._profiler.iterate(loader, lambda: iter(loader))

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
        return type(self), (self._loader, self._profiler)


class ProfiledGenerator(ProfiledLoader):
    """The stand-in for a loader that is its own iterator, such as a generator. `next` works on it
    as on the loader."""

    _own_attributes = ("_loader", "_profiler", "_open_pass")

    _open_pass: ProfiledIterator | None
    """The iterator that `next` advances; ``None`` outside a pass."""

    def __init__(self, loader: Any, profiler: LoaderProfiler) -> None:
        super().__init__(loader, profiler)
        object.__setattr__(self, "_open_pass", None)

    def __iter__(self) -> ProfiledIterator:
        object.__setattr__(self, "_open_pass", None)
        return super().__iter__()

    def __next__(self) -> Any:
        iterator = super().__iter__() if self._open_pass is None else self._open_pass
        object.__setattr__(self, "_open_pass", iterator)
        try:
            return next(iterator)
        except StopIteration:
            object.__setattr__(self, "_open_pass", None)
            raise
