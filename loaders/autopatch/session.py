"""Watch every loader that a script iterates, though nobody edited it.

torch's `DataLoader` is changed in three places, from the moment at which the script imports it:
``__new__`` notes where a loader is made, ``__init__`` puts other arguments in the place of the
script's, and ``__iter__`` measures. Whatever fails in ours is noted, and the script goes on as
without us.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeprof.loaders.autopatch.call_sites import CallSites
from pipeprof.loaders.autopatch.lost_options import LostOptions
from pipeprof.loaders.autopatch.monkeypatch import Method, note_objects, put_around
from pipeprof.loaders.autopatch.overrides import Override, merged, override
from pipeprof.log import log_caught
from pipeprof.measure.import_hook import when_imported

if TYPE_CHECKING:  # importing it imports torch
    from pipeprof.loaders.instrument.profiler import LoaderProfiler
    from pipeprof.loaders.live.view import Live
    from pipeprof.model import Profile

_log = logging.getLogger(__name__)


class Session:
    """The loaders of this process, but not of those that it forks."""

    def __init__(
        self,
        places: CallSites,
        overrides: Sequence[Override] = (),
        live: Callable[[], Live] | None = None,
        whole: bool = False,
    ) -> None:
        """``live`` makes what shows the loaders as they go; called when one is iterated first.
        ``whole``: each batch of them is watched, whatever that costs."""
        self.problems: list[str] = []
        """What could not be done, a line each."""
        self._process = os.getpid()
        self._places = places
        self._overrides = overrides
        self._live, self._whole = live, whole
        self._made: dict[int, tuple[weakref.ref[Any], str]] = {}
        """The `id` of each loader that lives → itself, not kept alive, and its name."""
        self._names: dict[str, None] = {}
        """Of all loaders that were made, in order."""
        self._notes: dict[str, dict[str, None]] = {}
        """Name → what was done to the arguments."""
        self._rebuilt = LostOptions()
        self._watches: dict[str, LoaderProfiler] = {}
        self._wrapped: list[LoaderProfiler] = []
        """Those of loaders that the script itself wrapped."""
        self._under_way = threading.local()

    def install(self) -> None:
        """Wait for the script to import torch, or ours."""
        when_imported("torch.utils.data.dataloader", self._hook_torch)
        when_imported("pipeprof.loaders.instrument.wrap", self._hook_wrap)

    @property
    def made(self) -> list[str]:
        """Names of the loaders that were made, iterated or not."""
        return list(self._names)

    def profiles(self, threshold: float) -> list[Profile]:
        """One for each loader that delivered anything."""
        found = []
        for name, watch in [*self._watches.items(), *(("", each) for each in self._wrapped)]:
            try:
                profile = watch.profile(threshold)
            except Exception as error:
                self._failed(f"{name or 'a wrapped loader'} was measured, but not analysed", error)
                continue
            if watch.batches:
                notes = (*profile.notes, *self._notes.get(name, ()))
                notes += self._rebuilt.notes(name, self._watches)
                found.append(replace(profile, notes=notes))
            else:
                self.problems.append(f"{profile.name} was iterated, but delivered no batch")
        return found

    def remarks(self) -> list[str]:
        """Of overrides, what no profile tells: a line each."""
        made = f"they were made at {', '.join(self.made)}" if self.made else "none was made at all"
        unused = [
            f"--set {each.text}: no DataLoader was made there; {made}"
            for each in self._overrides
            if not any(each.is_for(name) for name in self.made)
        ]
        # such as those that a framework has made anew, with the arguments as they are by now
        not_iterated = [name for name in self._notes if name not in self._watches]
        return unused + [f"{name}: {note}" for name in not_iterated for note in self._notes[name]]

    @property
    def is_ours(self) -> bool:
        """False in a process that was forked from the one we watch, such as a worker."""
        return os.getpid() == self._process

    def _hook_torch(self, module: ModuleType) -> None:
        try:
            self._hook_class(module.DataLoader)
            note_objects(module.DataLoader, self._note)
        except Exception as error:
            self._failed("torch's DataLoader cannot be watched", error)

    def _hook_wrap(self, module: ModuleType) -> None:
        """A loader that the script wraps is measured by that, and reported with the others."""

        def around(original: Method) -> Method:
            @wraps(original)
            def hooked_iter(loader: Any) -> Any:
                if self.is_ours and loader._profiler not in self._wrapped:
                    self._wrapped.append(loader._profiler)
                    self._show(loader._profiler)
                return self._apart(loader._loader, lambda: original(loader))

            return hooked_iter

        put_around(module.ProfiledLoader, "__iter__", around)

    def _note(self, loader: Any) -> None:
        """``loader`` is being made."""
        if not self.is_ours:
            return
        try:
            key = id(loader)
            name = self._places.name(sys._getframe(2), type(loader).__name__)
            lives = self._made.copy().values()  # which one that is collected now would change
            self._rebuilt.made(name, [(ref(), other) for ref, other in lives])
            ref = weakref.ref(loader, lambda _: self._made.pop(key, None))
            self._made[key] = ref, name
            self._names[name] = None
            self._hook_class(type(loader))
        except Exception as error:
            self._failed(f"a {type(loader).__name__} cannot be watched", error)

    def _hook_class(self, cls: type) -> None:
        put_around(cls, "__iter__", self._around_iter)
        if self._overrides:
            put_around(cls, "__init__", self._around_init)

    def _around_init(self, original: Method) -> Method:
        signature = inspect.signature(original)

        @wraps(original)
        def hooked_init(loader: Any, *args: Any, **kwargs: Any) -> None:
            if self.is_ours:
                args, kwargs = self._overridden(signature, loader, args, kwargs)
            original(loader, *args, **kwargs)

        return hooked_init

    def _overridden(
        self,
        signature: inspect.Signature,
        loader: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to make ``loader`` with."""
        try:
            name = self._name_of(loader)
            call = signature.bind(loader, *args, **kwargs)
            defaults = {key: each.default for key, each in signature.parameters.items()}
            changes, notes = override({**defaults, **call.arguments}, merged(self._overrides, name))
            call.arguments.update(changes)
            self._notes.setdefault(name, {}).update(dict.fromkeys(notes))
            return call.args[1:], call.kwargs
        except TypeError:  # a wrong call: torch says so
            return args, kwargs
        except Exception as error:
            self._failed("--set was left out", error)
            return args, kwargs

    def _around_iter(self, original: Method) -> Method:
        @wraps(original)
        def hooked_iter(loader: Any) -> Any:
            if not self.is_ours or getattr(self._under_way, "loader", None) is loader:
                return original(loader)
            return self._iterate(loader, lambda: original(loader))

        return hooked_iter

    def _iterate(self, loader: Any, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        begin = _Begin(start)
        try:
            return self._apart(loader, lambda: self._watch(loader).iterate(loader, begin))
        except Exception as error:
            if begin.failed:
                raise  # the script's own
            self._failed(f"{self._name_of(loader)} was not measured", error)
        return begin.iterator if begin.iterator is not None else start()

    def _watch(self, loader: Any) -> LoaderProfiler:
        name = self._name_of(loader)
        self._places.iterated(name)
        self._rebuilt.iterated(name, loader)
        from pipeprof.loaders.instrument.profiler import LoaderProfiler

        if name not in self._watches:
            self._watches[name] = LoaderProfiler(name, whole=self._whole)
            self._show(self._watches[name])
        return self._watches[name]

    def _show(self, watch: LoaderProfiler) -> None:
        if self._live is not None:
            watch.live = self._live()

    def _name_of(self, loader: Any) -> str:
        made = self._made.get(id(loader))
        return made[1] if made is not None else type(loader).__name__

    def _apart(self, loader: Any, measure: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """``measure``, in which the ``__iter__`` of ``loader`` need not be measured once more."""
        outer = getattr(self._under_way, "loader", None)
        self._under_way.loader = loader
        try:
            return measure()
        finally:
            self._under_way.loader = outer

    def _failed(self, what: str, error: Exception) -> None:
        log_caught(_log, error, what)
        line = f"{what} ({type(error).__name__})"  # its text might hold a secret
        if line not in self.problems:
            self.problems.append(line)


class _Begin:
    """Starts an iterator, once, and remembers how that went."""

    def __init__(self, start: Callable[[], Iterator[Any]]) -> None:
        self._start = start
        self.iterator: Iterator[Any] | None = None
        self.failed = False

    def __call__(self) -> Iterator[Any]:
        try:
            self.iterator = self._start()
        except BaseException:
            self.failed = True
            raise
        return self.iterator
