"""The stand-in for a loader that is tuned, also where a framework rebuilds or contains it."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from pipeprof.loaders.instrument.inside import hook_class, watch_rebuilds
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.rebuilds import set_profiler
from pipeprof.loaders.instrument.wrap import ProfiledLoader, class_like
from pipeprof.loaders.tune.tuner import Tuner
from pipeprof.loaders.tune.variant import setting_of
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.model import TunedSetting, Tuning

if TYPE_CHECKING:  # what shows figures is imported only where that is asked for
    from pipeprof.loaders.live.live_pass import LiveLoader

_log = logging.getLogger(__name__)

Make = Callable[[DataLoader[Any]], Tuner | str]
"""Returns a tuner of a loader, or why that cannot be tuned."""

_TUNER = "_tuner_of_pipeprof"
"""The attribute by which a rebuilt or contained loader keeps its tuner."""


def stand_in(
    loader: Any,
    tuner: Tuner | None,
    reason: str = "",
    make: Make | None = None,
    untuned: LoaderProfiler | None = None,
) -> TunedLoader:
    """Return an object that behaves as ``loader``, and is tuned by ``tuner``.

    Args:
        loader: The loader that the script has.
        tuner: Of ``loader``, or of the DataLoader whose batches it passes on. With ``None`` the
            loader is only measured.
        reason: Why it is not tuned.
        make: Makes a tuner for the loader that a framework builds instead. Without it none is.
        untuned: Measures a loader that is not tuned.
    """
    made: TunedLoader = object.__new__(class_like(loader, TunedLoader))
    follower = Follower(made, make)
    own = tuner if tuner is not None and tuner.loader is loader else None
    for name, value in (("_loader", loader), ("_own", own), ("_tuner", tuner), ("_reason", reason),
                        ("_follower", follower),
                        ("_untuned", untuned or LoaderProfiler("loader"))):  # fmt: skip
        object.__setattr__(made, name, value)
    if tuner is not None:
        _close_with(made, tuner)
        with suppress_and_log(_log, "a loader that a framework builds instead is not tuned"):
            set_profiler(made, follower)
            if own is None:
                follower.tune_inside(tuner)
            hook_class(type(tuner.loader))
            watch_rebuilds()
    return made


def _close_with(tuned: TunedLoader, tuner: Tuner) -> None:
    """Have ``tuner`` keep no workers once ``tuned`` is gone. It is part of a cycle, so it would end
    them late, and wherever Python collects garbage."""
    weakref.finalize(tuned, tuner.close).atexit = False


class TunedLoader(ProfiledLoader):
    """The stand-in that `pipeprof.tune` returns: the loader, with settings that it finds."""

    __slots__ = ("_follower", "_own", "_reason", "_tuner", "_untuned")
    _own_attributes = (*ProfiledLoader._own_attributes, *__slots__)
    _own: Tuner | None
    """Tunes the loader itself, if anything does."""
    _tuner: Tuner | None
    """The tuner in use: the own one, that of a loader within, or of one that was built instead."""
    _reason: str
    _follower: Follower
    _untuned: LoaderProfiler

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make another loader like the tuned one. It is tuned instead when it is iterated."""
        return cls._loader_class(*args, **kwargs)

    @property
    def _profiler(self) -> LoaderProfiler:  # type: ignore[override]  # it changes by itself
        return self._untuned if self._tuner is None else self._tuner.profiler

    def __iter__(self) -> Iterator[Any]:
        if self._own is None:
            return super().__iter__() if self._tuner is None else iter(self._loader)
        self._follower.used = True
        if self._tuner is not None and self._tuner is not self._own:
            self._tuner.close()
        object.__setattr__(self, "_tuner", self._own)
        return self._own.iterate()

    def show(self, shown: LiveLoader) -> None:
        """Before the first epoch: give the figures to ``shown``, too, whose epochs come in
        parts."""
        if self._tuner is not None:
            self._tuner.show(shown)

    def leave_as_it_is(self, reason: str) -> None:
        """Note why what a framework built instead is not tuned."""
        object.__setattr__(self, "_tuner", None)
        object.__setattr__(self, "_reason", reason)

    @property
    def is_tuned(self) -> bool:
        """Whether it is tuned; otherwise `tuning` says why not."""
        return self._tuner is not None

    def tuning(self) -> Tuning:
        """Return what was tried so far, what it brought, and what stays."""
        if self._tuner is not None:
            return self._tuner.tuning()
        loader = self._loader
        own = setting_of(loader) if isinstance(loader, DataLoader) else TunedSetting(0, None)
        return Tuning("off", own, own, own, notes=(self._reason,))

    def __reduce__(self) -> Any:
        return _same, (self._loader,)  # another process has other needs


def _same(loader: Any) -> Any:
    return loader


class Follower:
    """Tunes the DataLoader that a framework iterates in the place of the script's: one that it
    built with the same data set, or one that the script's loader contains.

    It stands where a `LoaderProfiler` does for loaders that are only measured. It is kept for as
    long as any of these loaders exists, so it keeps neither of them, nor the stand-in.
    """

    def __init__(self, tuned: TunedLoader, make: Make | None) -> None:
        self._tuned, self._make = weakref.ref(tuned), make
        self.used = False
        """Whether an epoch has begun: a loader that is built later serves another purpose."""

    def tune_inside(self, tuner: Tuner) -> None:
        """Let ``tuner`` tune the DataLoader that it was made for, wherever that is iterated."""
        self._make = None
        vars(tuner.loader)[_TUNER] = tuner
        set_profiler(tuner.loader, self)

    def iterate(self, loader: Any, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """Begin an epoch over ``loader``, whose own iterator ``start`` returns."""
        tuner = vars(loader).get(_TUNER) or self._tuner_of(loader)
        return start() if tuner is None else tuner.iterate()

    def _tuner_of(self, rebuilt: DataLoader[Any]) -> Tuner | None:
        if self.used or self._make is None:
            return None
        try:
            tuner = self._make(rebuilt)
        except Exception as error:
            log_caught(_log, error, "a loader that a framework built is not tuned")
            return None
        self.used = True
        tuned = self._tuned()
        if isinstance(tuner, str):
            if tuned is not None:
                tuned.leave_as_it_is(tuner)
            return None
        vars(rebuilt)[_TUNER] = tuner
        if tuned is None:
            tuner.close()
        else:
            _close_with(tuned, tuner)
            object.__setattr__(tuned, "_tuner", tuner)
        return tuner

    def hooked_state_dict(self, loader: Any, state_dict: Callable[[], Any]) -> Any:
        """Return ``state_dict()`` of ``loader``, which is not tuned where it has one."""
        return state_dict()
