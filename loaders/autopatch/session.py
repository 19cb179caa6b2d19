"""Profile every loader that a script iterates, without an edit of the script.

When the script imports torch, three methods of `DataLoader` are wrapped. ``__new__`` notes where a
loader is created, ``__init__`` replaces arguments of the script, and ``__iter__`` measures. Of the
loaders in `other_loaders`, what makes their iterators is wrapped. An error of pipeprof's own is
reported, and the script continues as without pipeprof.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeprof.loaders.autopatch.call_sites import CallSites
from pipeprof.loaders.autopatch.loader_names import LoaderNames
from pipeprof.loaders.autopatch.other_loaders import hook_other_loaders
from pipeprof.loaders.autopatch.overrides import Override, merge_overrides, override_call
from pipeprof.loaders.autopatch.shown_loaders import ShownLoaders
from pipeprof.loaders.autopatch.tuned_loaders import Tune, TunedLoaders, is_trial
from pipeprof.loaders.instrument.guarded_start import GuardedStart
from pipeprof.loaders.instrument.monkeypatch import Method, observe_creation, wrap_in, wrap_method
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.import_hook import when_imported

if TYPE_CHECKING:  # importing it imports torch
    from pipeprof.loaders.instrument.profiler import LoaderProfiler
    from pipeprof.loaders.live.periodic import Periodic
    from pipeprof.loaders.tune.tuned_loader import TunedLoader
    from pipeprof.model import Profile, Tuning

_log = logging.getLogger(__name__)
_running: list[Session] = []
"""The session of this process, if any."""


def is_running() -> bool:
    """Return whether ``pipeprof run`` profiles this process."""
    return any(each.is_profiled_process for each in _running)


class Session:
    """Profiles the loaders of this process, and of those that it forks where these are followed.
    Workers of DataLoaders are left alone."""

    def __init__(
        self,
        call_sites: CallSites,
        overrides: Sequence[Override] = (),
        outputs: Callable[[], Sequence[Periodic]] | None = None,
        whole: bool = False,
        tune: Tune | None = None,
        in_fork: Callable[[], None] | None = None,
    ) -> None:
        """Prepare a session; `install` starts it. ``outputs`` returns where figures are shown and
        exported, and is called when a loader is first iterated. With ``whole`` every batch is
        recorded in full, whatever that costs. ``tune`` tunes what the script does not; ``None``
        where nothing does. ``in_fork`` is called in a forked process once it iterates a loader;
        with ``None`` such processes are not measured."""
        self.problems: list[str] = []
        """What could not be done, a line each."""
        self._process = os.getpid()
        self._names = LoaderNames(call_sites)
        self._overrides = overrides
        self._shown, self._whole = ShownLoaders(outputs), whole
        self._in_fork = in_fork
        self._tuned = TunedLoaders(tune)
        self._notes: dict[str, dict[str, None]] = {}
        """Notes on replaced arguments, by the name of the loader."""
        self._profilers: dict[str, LoaderProfiler] = {}
        self._wrapped: list[LoaderProfiler] = []
        """The profilers of loaders that the script itself wrapped."""

    def install(self) -> None:
        """Hook the classes as soon as the script imports torch or pipeprof."""
        _running.append(self)
        when_imported("torch.utils.data.dataloader", self._hook_torch)
        when_imported("pipeprof.loaders.instrument.wrap", self._hook_wrap)
        when_imported("pipeprof.loaders.tune.tuned_loader", self._hook_tune)
        wrap_init = self._wrap_init if self._overrides else None
        created = partial(self._register, hook=False)
        hook_other_loaders(self._wrap_iter, wrap_init, created, self.problems)

    @property
    def created(self) -> list[str]:
        """Names of the loaders that were created, iterated or not."""
        return self._names.created

    def profiles(self, threshold: float) -> list[Profile]:
        """Return the profile of each loader that delivered a batch; of a tuned one, with the
        setting that stays."""
        profiles = []
        self._profilers |= self._tuned.profilers()
        for name, profiler in [*self._profilers.items(), *(("", each) for each in self._wrapped)]:
            try:
                profile = profiler.profile(threshold)
            except Exception as error:
                self._failed(f"{name or 'a wrapped loader'} was measured, but not analysed", error)
                continue
            if profiler.has_report:
                notes = (*profile.notes, *self._notes.get(name, ()))
                profiles.append(replace(profile, name=name or profile.name, notes=notes))
            else:
                self.problems.append(f"{profile.name} was iterated, but delivered no batch")
        return profiles

    def tunings(self) -> dict[str, Tuning]:
        """Return what was done to each loader that was to be tuned, by its name."""
        return self._tuned.tunings()

    def remarks(self) -> list[str]:
        """Return a line on each override that applied to no loader, or to one never iterated."""
        names = list(self._notes)
        made = f"they were made at {', '.join(names)}" if names else "none was made at all"
        unused = [
            f"--set {each.text}: no DataLoader was made there; {made}"
            for each in self._overrides
            if not any(map(each.applies_to, names))
        ]
        # a framework may have rebuilt them, with the arguments already replaced
        iterated = self._profilers.keys() | self._tuned.profilers().keys()
        not_iterated = [name for name in self._notes if name not in iterated]
        return unused + [f"{name}: {note}" for name in not_iterated for note in self._notes[name]]

    @property
    def is_profiled_process(self) -> bool:
        """False in a process that was forked from the profiled one, and has iterated no loader."""
        return os.getpid() == self._process

    def _is_measured_here(self) -> bool:
        """Return whether loaders of this process are measured; in a fork, begin anew."""
        if not self.is_profiled_process and self._may_be_measured():
            assert self._in_fork is not None
            self._process = os.getpid()
            self.problems = []
            self._profilers, self._wrapped = {}, []
            self._tuned.forget()
            # what shows and exports has threads, which a fork does not copy
            self._shown = ShownLoaders(None)
            try:
                self._in_fork()
            except Exception as error:
                self._failed("a forked process is not measured", error)
        return self.is_profiled_process

    def _may_be_measured(self) -> bool:
        """Return whether this process, forked or not, is none of a DataLoader's workers."""
        if self.is_profiled_process or self._in_fork is None:
            return self.is_profiled_process
        workers: Any = sys.modules.get("torch.utils.data")
        return workers is not None and workers.get_worker_info() is None

    def _hook_torch(self, module: ModuleType) -> None:
        try:
            self._hook_class(module.DataLoader)
            observe_creation(module.DataLoader, self._register, key="run")
        except Exception as error:
            self._failed("torch's DataLoader cannot be profiled", error)

    def _hook_wrap(self, module: ModuleType) -> None:
        """Report loaders that the script itself wraps, too, without measuring them twice."""

        def wrapper(original: Method) -> Method:
            @wraps(original)
            def hooked_iter(loader: Any) -> Any:
                if self._is_measured_here() and loader._profiler not in self._wrapped:
                    self._wrapped.append(loader._profiler)
                    self._shown.show(loader._profiler)
                return original(loader)

            return hooked_iter

        wrap_method(module.ProfiledLoader, "__iter__", wrapper, key="run")

    def _hook_tune(self, module: ModuleType) -> None:
        """Report loaders that the script itself tunes, too."""

        def wrapper(original: Method) -> Method:
            @wraps(original)
            def hooked_iter(loader: TunedLoader) -> Any:
                if loader.is_tuned and self._is_measured_here():
                    with suppress_and_log(_log, "a loader that the script tunes is not reported"):
                        name = self._names.of(loader._loader)  # as `_iterate` names it
                        self._names.iterated(name)
                        self._tuned.add(name, loader, self._shown)
                return original(loader)

            return hooked_iter

        wrap_in(module.TunedLoader, "__iter__", wrapper, key="run")

    def _register(self, loader: Any, hook: bool = True) -> None:
        """Name ``loader``, which is being created, and hook its class."""
        if not self._may_be_measured():
            return
        try:
            self._names.register(loader, sys._getframe(1))
            if hook:
                self._hook_class(type(loader))
        except Exception as error:
            self._failed(f"a {type(loader).__name__} cannot be profiled", error)

    def _hook_class(self, cls: type) -> None:
        wrap_method(cls, "__iter__", self._wrap_iter, key="run")
        if self._overrides:
            wrap_method(cls, "__init__", self._wrap_init, key="run")

    def _wrap_init(self, original: Method) -> Method:
        signature = inspect.signature(original)

        @wraps(original)
        def hooked_init(loader: Any, *args: Any, **kwargs: Any) -> None:
            if self._may_be_measured():
                args, kwargs = self._override(signature, loader, args, kwargs)
            original(loader, *args, **kwargs)

        return hooked_init

    def _override(
        self,
        signature: inspect.Signature,
        loader: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments to initialise ``loader`` with."""
        try:
            name = self._names.of(loader)
            wanted = merge_overrides(self._overrides, name)
            call, notes = override_call(signature.bind(loader, *args, **kwargs), wanted)
            self._notes.setdefault(name, {}).update(dict.fromkeys(notes))
            return call.args[1:], call.kwargs
        except TypeError:  # a wrong call, for which torch raises an error
            return args, kwargs
        except Exception as error:
            self._failed("--set was left out", error)
            return args, kwargs

    def _wrap_iter(self, original: Method) -> Method:
        @wraps(original)
        def hooked_iter(loader: Any) -> Any:
            if not self._is_measured_here() or self._is_measured(loader) or is_trial(loader):
                return original(loader)
            return self._iterate(loader, partial(original, loader))

        return hooked_iter

    def _iterate(self, loader: Any, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        guarded = GuardedStart(start)
        try:
            from pipeprof.loaders.instrument.inside import being_measured

            name = self._names.of(loader)
            if (batches := self._tuned.batches(name, loader, self._shown)) is not None:
                self._names.iterated(name)
                return batches
            with being_measured(loader):
                return self._profiler(loader).iterate(loader, guarded)
        except Exception as error:
            if guarded.failed:
                raise  # an error of the script's own
            self._failed(f"{self._names.of(loader)} was not measured", error)
        return guarded.iterator if guarded.iterator is not None else start()

    def _is_measured(self, loader: Any) -> bool:
        """Return whether ``loader`` is measured elsewhere: by this session already, as the script
        asks, or where the DataLoader is iterated that it holds."""
        from pipeprof.loaders.instrument import inside
        from pipeprof.loaders.instrument.rebuilds import profiler_of
        from pipeprof.loaders.pipelines.observer import is_timed

        if inside.is_being_measured(loader) or is_timed(loader) or inside.is_awaited_by_outer():
            return True
        return profiler_of(loader) is not None or inside.holds_another(loader)

    def _profiler(self, loader: Any) -> LoaderProfiler:
        name = self._names.first_of(loader)
        self._names.iterated(name)
        from pipeprof.loaders.instrument.profiler import LoaderProfiler

        if name not in self._profilers:
            self._profilers[name] = LoaderProfiler(name, whole=self._whole)
            self._profilers[name].live = self._shown.of(name)
        return self._profilers[name]

    def _failed(self, problem: str, error: Exception) -> None:
        log_caught(_log, error, problem)
        line = f"{problem} ({type(error).__name__})"  # the error's text might hold a secret
        if line not in self.problems:
            self.problems.append(line)
