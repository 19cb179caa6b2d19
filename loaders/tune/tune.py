"""`pipeprof.tune`: a loader that finds its own settings while training runs."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, IterableDataset

from pipeprof.errors import UsageError
from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.loaders.instrument.inside import loader_within
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.worker_starts import workers_are_threads
from pipeprof.loaders.instrument.wrap import live_loader
from pipeprof.loaders.tune.agreement import terms_of
from pipeprof.loaders.tune.candidates import SETTINGS, Bounds, with_values
from pipeprof.loaders.tune.proposal_process import ProposalProcess
from pipeprof.loaders.tune.ranks import find_ranks
from pipeprof.loaders.tune.remembered import RememberedSettings
from pipeprof.loaders.tune.tuned_loader import TunedLoader, stand_in
from pipeprof.loaders.tune.tuner import Tuner
from pipeprof.loaders.tune.variant import setting_of
from pipeprof.storage.local import LocalStore

if TYPE_CHECKING:  # what shows figures is imported only where that is asked for
    from pipeprof.loaders.live.live_pass import LiveLoader

_NUMBERS = itertools.count()
"""Of the loaders that are tuned: the same in all ranks of a job, which call `tune` alike."""
_PERSISTENT = "persistent_workers"
_OTHER_PARTS = (
    "other workers read other parts, so batches hold other rows together; exact=True keeps them"
)
_OTHER_NUMBERS = (
    "workers that start draw other random numbers, as for augmentation; exact=True keeps them"
)


def tune(
    loader: Any,
    *,
    budget: float = 0.05,
    exact: bool = False,
    any_order: bool = False,
    fixed: Mapping[str, Any] | None = None,
    tuned: str | os.PathLike[str] | None = None,
    name: str = "loader",
    live: bool = False,
    export: str | None = None,
    export_every: float = 15.0,
) -> TunedLoader:
    """Find the settings with which ``loader`` feeds the accelerator, while training runs.

    The first batches show what limits the loader. Settings that a simulation expects to be faster
    are then tried on live batches, in turns with the present one, and the faster one stays. Each
    sample comes exactly once, of a map-style data set in the order of ``loader``; random numbers of
    the training process are the same. Those that workers draw change with the number of workers.

    Args:
        loader: A torch ``DataLoader`` over a map-style data set. One whose data set is of
            `pipeprof.open_dataset` is tuned between epochs. Any other is only measured, and
            `TunedLoader.tuning` says why.
        budget: The time that trials may cost, as a share of the first epoch, or of all training so
            far where that is longer.
        exact: Keep the random numbers that workers draw. The number of workers then stays, and
            other settings change between epochs only.
        any_order: Also try to deliver batches as they are ready (``in_order=False``). Their order
            then differs from run to run.
        fixed: Values of `TunedSetting` that must stay, such as ``{"num_workers": 4}``.
        tuned: A JSON file that keeps the chosen setting. The next run with the same data set,
            machine and versions starts with it, and compares it with the setting of ``loader``.
        name: The name in profiles, and in the figures of ``live`` and ``export``.
        live: Show figures during the run, as `pipeprof.wrap` does.
        export: Where to send the figures of the last seconds, as for `pipeprof.wrap`.
        export_every: Seconds between two exports.

    Returns:
        A stand-in that behaves as ``loader`` and adds ``tuning()``, and ``profile()`` of the
        setting in use.

    Raises:
        UsageError: ``loader`` cannot be iterated, ``budget`` is no share, ``fixed`` names
            something else, ``tuned`` is a file of another kind, or ``export`` names nothing known.
        OutputError: The file or the port of ``export`` cannot be used.

    Examples:
        >>> loader = pipeprof.tune(loader)
        >>> for batch in loader:
        ...     train_step(batch)
        >>> print(loader.tuning())
    """
    if issubclass(type(loader), TunedLoader):
        same: TunedLoader = loader
        return same
    _check_arguments(loader, budget, fixed)
    within = loader_within(loader)
    tuned_loader = loader if within is None else within
    reason = _why_not(tuned_loader, exact)
    shown = live_loader(name, live, export, export_every, in_parts=not reason)
    if reason:
        untuned = LoaderProfiler(name)
        untuned.live = shown
        return stand_in(loader, None, reason, untuned=untuned)
    stay = {*(fixed or ()), *(("num_workers",) if exact else ())}
    options = _Options(
        budget, exact, frozenset(stay if any_order else stay | {"in_order"}), dict(fixed or {}),
        RememberedSettings(Path(tuned)) if tuned else None, next(_NUMBERS), shown, name,
    )  # fmt: skip
    make = partial(_tuner_of_rebuilt, options=options)
    return stand_in(loader, _tuner_of(tuned_loader, options), make=make)


@dataclass(frozen=True)
class _Options:
    """What `tune` was asked for."""

    budget: float
    exact: bool
    stay: frozenset[str]
    """Names of settings that must stay."""
    fixed: Mapping[str, Any]
    remembered: RememberedSettings | None
    number: int
    shown: LiveLoader | None
    name: str


def _tuner_of(loader: DataLoader[Any], options: _Options) -> Tuner:
    stay, remembered = options.stay, options.remembered
    between = _why_between_epochs(loader, options.exact)
    set_by_user = {name: value for name, value in options.fixed.items() if name != _PERSISTENT}
    own = with_values(setting_of(loader), set_by_user)
    found = (remembered and remembered.find(loader)) or own
    first = with_values(found, {name: getattr(own, name) for name in stay if name != _PERSISTENT})
    return Tuner(
        loader,
        partial(ProposalProcess, bounds=_bounds_of(loader, stay)),
        options.budget,
        terms_of(loader, first),
        own,
        partial(find_ranks, f"{options.number}"),
        within_epochs=not between,
        may_keep_workers=not options.exact and _PERSISTENT not in stay,
        notes=_notes(loader, options.exact, between),
        keep=partial(remembered.keep, loader) if remembered else None,
        shown=options.shown,
        name=options.name,
    )


def _tuner_of_rebuilt(loader: DataLoader[Any], options: _Options) -> Tuner | str:
    """Return a tuner of the loader that a framework built, or why it cannot be tuned."""
    return _why_not(loader, options.exact) or _tuner_of(loader, options)


def _check_arguments(loader: Any, budget: float, fixed: Mapping[str, Any] | None) -> None:
    if not hasattr(type(loader), "__iter__"):
        raise UsageError(
            f"tune() takes a DataLoader or another iterable of batches, not {type(loader).__name__}"
        )
    if not 0 <= budget <= 1:
        raise UsageError(f"budget={budget} is no share of the first epoch: give 0 to 1")
    names = (*SETTINGS, _PERSISTENT)
    unknown = sorted({*(fixed or ())} - {*names})
    if unknown:
        raise UsageError(f"fixed={unknown[0]!r} is not tuned; give any of {', '.join(names)}")


def _notes(loader: DataLoader[Any], exact: bool, between: str) -> tuple[str, ...]:
    """Say what will not stay the same."""
    notes = [] if exact else [_OTHER_NUMBERS]
    notes += [] if exact or not _is_iterable(loader) else [_OTHER_PARTS]
    notes += [f"{between}, so settings change between epochs only"] if between else []
    return tuple(notes)


def _why_not(loader: Any, exact: bool) -> str:
    """Why ``loader`` cannot change its settings; empty if it can."""
    kind = type(loader).__name__
    if not isinstance(loader, DataLoader):
        return f"{kind} is not a torch DataLoader"
    if type(loader).__iter__ is not DataLoader.__iter__ or hasattr(loader, "state_dict"):
        return f"{kind} makes iterators of its own"
    if inspect.isgeneratorfunction(inspect.unwrap(DataLoader.__iter__)):
        return "another profiler has replaced the iterators of DataLoader"
    if _is_iterable(loader) and not isinstance(loader.dataset, FileDataset):
        return "its data set is iterable: other workers might yield other samples"
    if workers_are_threads(loader):
        return "its workers are threads of the training process"
    if loader._iterator is not None:
        return "its persistent workers are running already"
    if exact and loader.persistent_workers:
        return "its persistent workers keep the state of their random numbers between epochs"
    return ""


def _why_between_epochs(loader: DataLoader[Any], exact: bool) -> str:
    """Why settings cannot change within an epoch; empty if they can."""
    if _is_iterable(loader):
        return "its data set is iterable"
    if exact and loader.num_workers:
        return "workers that start within an epoch would draw other random numbers"
    return ""


def _is_iterable(loader: DataLoader[Any]) -> bool:
    return isinstance(loader.dataset, IterableDataset)


def _bounds_of(loader: DataLoader[Any], fixed: Iterable[str]) -> Bounds:
    """Return what limits the settings of ``loader``, where those named ``fixed`` must stay."""
    data = loader.dataset
    if not isinstance(data, FileDataset):
        return Bounds(frozenset(fixed))
    local = isinstance(data.store, LocalStore)
    return Bounds(frozenset(fixed), data.splits, local, not local and not data.shuffled)
