"""`pipeprof.wrap`: the loader you have, seen from inside."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from pipeprof.analyze.profile import assemble
from pipeprof.errors import UsageError
from pipeprof.loaders.batches import count_samples
from pipeprof.loaders.hook import WorkerHook
from pipeprof.loaders.observe import HostObserver, InlineObserver, Observer, WorkersObserver
from pipeprof.measure.environment import read_environment
from pipeprof.measure.overhead import measure_overhead
from pipeprof.measure.recorder import Origin, Recorder
from pipeprof.measure.ring import Ring
from pipeprof.model import BatchLog, CacheState, DataSource, LoaderConfig, Profile, Recording

_SPARE_SLOTS = 64
"""Records that a worker may be ahead of main's reading, above what prefetching allows."""


def wrap(loader: Any, name: str = "loader", accelerator: str = "not looked at") -> ProfiledLoader:
    """Profile ``loader`` as it is iterated; everything else about it stays as it is.

    ``loader`` is a torch DataLoader, or any other iterable of batches, of which only the host's
    side is seen. ``accelerator`` says in the profile what consumes the batches.
    Raises `UsageError` for what cannot be iterated.
    """
    if isinstance(loader, ProfiledLoader):
        return loader
    if not hasattr(type(loader), "__iter__"):
        raise UsageError(
            f"wrap() takes a DataLoader or another iterable of batches, not {type(loader).__name__}"
        )
    return ProfiledLoader(loader, name, accelerator)


class ProfiledLoader:
    """Behaves as the loader it wraps, and has `profile`."""

    _own = ("_loader", "_name", "_accelerator", "_recorder", "_observer", "_missing", "_notes",
            "_inner")  # fmt: skip

    def __init__(self, loader: Any, name: str, accelerator: str) -> None:
        self._loader = loader
        self._name = name
        self._accelerator = accelerator
        self._recorder = Recorder()
        self._observer: Observer = HostObserver()
        self._missing: dict[str, str] = {}
        self._notes: list[str] = []
        self._inner: Any = None
        """The persistent iterator that carries our hook."""

    def __iter__(self) -> ProfiledIterator:
        self._recorder.begin_epoch()
        iterator = self._make_iterator()
        size = getattr(self._loader, "batch_size", None)
        return ProfiledIterator(iterator, self._recorder, self._observer, size)

    def profile(self, threshold: float = 0.05) -> Profile:
        """All epochs so far, analysed. ``threshold``: the starved share that counts as starved."""
        return assemble(self.recording(), threshold)

    def recording(self) -> Recording:
        """All epochs so far, as measured."""
        log = self._recorder.log()
        config = describe_loader(self._loader)
        source = getattr(getattr(self._loader, "dataset", None), "source", None)
        first = self._recorder.first_batch_s
        return Recording(
            name=self._name,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            config=config,
            environment=read_environment(self._accelerator),
            batches=log,
            warmup_batches=max(1, config.num_workers * (config.prefetch_factor or 1)),
            first_batch_s=first[0] if first else None,
            lost_records=self._recorder.lost_records,
            source=source if isinstance(source, DataSource) else None,
            cache=CacheState("unknown", "the page cache was not inspected"),
            overhead=measure_overhead(log),
            missing={**_never_seen(config, log), **self._missing},
            notes=tuple(self._notes),
        )

    def _make_iterator(self) -> Iterator[Any]:
        loader = self._loader
        if not isinstance(loader, DataLoader):
            self._unseen(f"{type(loader).__name__} is not a torch DataLoader")
            return iter(loader)
        try:
            if loader.num_workers == 0:
                return self._inline_iterator(loader)
            return self._workers_iterator(loader)
        except _CannotHookError as error:
            self._unseen(str(error))
            return iter(loader)

    def _inline_iterator(self, loader: DataLoader[Any]) -> Iterator[Any]:
        iterator = iter(loader)
        observer = InlineObserver()
        if hasattr(iterator, "_dataset_fetcher"):
            observer.attach(iterator)
            self._observer = observer
        else:
            self._unseen(f"{type(loader).__name__} makes an iterator of its own")
        return iterator

    def _workers_iterator(self, loader: DataLoader[Any]) -> Iterator[Any]:
        kept = loader._iterator if loader.persistent_workers else None
        if kept is not None and kept is self._inner:
            self._observer.begin_epoch()
            return iter(loader)
        if kept is not None:
            raise _CannotHookError("its persistent workers were running before wrap()")
        return self._hooked_iterator(loader)

    def _hooked_iterator(self, loader: DataLoader[Any]) -> Iterator[Any]:
        """Start workers that carry the hook."""
        try:
            ring = Ring(loader.num_workers, (loader.prefetch_factor or 2) + _SPARE_SLOTS)
        except OSError as error:
            raise _CannotHookError(f"no shared memory for the workers' records: {error}") from None
        observer = WorkersObserver(ring)
        observer.begin_epoch()
        user_init = loader.worker_init_fn
        loader.worker_init_fn = WorkerHook(ring, user_init)
        try:
            iterator = iter(loader)
        finally:
            loader.worker_init_fn = user_init
        if not observer.fits(iterator):
            self._unseen(f"{type(loader).__name__} makes an iterator of its own")
            return iterator
        observer.attach(iterator)
        self._observer = observer
        self._inner = iterator if loader.persistent_workers else None
        return iterator

    def _unseen(self, reason: str) -> None:
        """Step aside: the training goes on, and the profile says what is missing and why."""
        self._observer = HostObserver()
        for stage in ("fetch", "collate", "transfer"):
            self._missing[stage] = reason

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name in self._own:  # not made yet, as when it is copied
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._own:
            object.__setattr__(self, name, value)
        else:
            setattr(self._loader, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """``isinstance(wrapped, DataLoader)`` holds where it held for the loader itself."""
        return type(self._loader)


class ProfiledIterator:
    """One pass over the loader."""

    def __init__(
        self,
        iterator: Iterator[Any],
        recorder: Recorder,
        observer: Observer,
        batch_size: int | None,
    ) -> None:
        self._iterator = iterator
        self._recorder = recorder
        self._observer = observer
        self._batch_size = batch_size

    def __iter__(self) -> ProfiledIterator:
        return self

    def __next__(self) -> Any:
        self._recorder.ask()
        batch = next(self._iterator)
        self._recorder.deliver(*self._seen(batch), self._observer.expects_record)
        return batch

    def _seen(self, batch: Any) -> tuple[int, Origin]:
        """Samples and origin. A batch is any object at all, and torch may change: what cannot be
        told counts as one sample of unknown origin, and is no reason to disturb the training."""
        try:
            samples = count_samples(batch, self._batch_size)
        except Exception:
            samples = 1
        try:
            return samples, self._observer.origin(self._iterator)
        except Exception:
            return samples, Origin()

    def __len__(self) -> int:
        return len(self._iterator)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

    def __del__(self) -> None:
        self._recorder.leave()


class _CannotHookError(Exception):
    """Why the workers cannot be seen."""


def _never_seen(config: LoaderConfig, log: BatchLog) -> dict[str, str]:
    """Stages that this version cannot see in this run, and why."""
    missing = {"h2d": "copies to a device are not measured by this version"}
    if config.pin_memory:
        missing["pin"] = "not told apart by this version: it is part of wait"
    if any(log.fetch_end_s) and not any(log.read_s) and not any(log.decode_s):
        for stage in ("read", "decode", "transform"):
            missing[stage] = "the data set is a black box: it is part of fetch"
    return missing


def describe_loader(loader: Any) -> LoaderConfig:
    """The settings of ``loader``, as far as it has them."""
    if not isinstance(loader, DataLoader):
        return LoaderConfig(num_workers=0)
    iterable = isinstance(loader.dataset, IterableDataset)
    return LoaderConfig(
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor if loader.num_workers else None,
        batch_size=loader.batch_size or getattr(loader.dataset, "batch_size", None),
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        in_order=bool(getattr(loader, "in_order", True)),
        start_method=_start_method(loader) if loader.num_workers else None,
        kind="iterable" if iterable else "map",
    )


def _start_method(loader: DataLoader[Any]) -> str:
    context = loader.multiprocessing_context
    chosen = context.get_start_method() if context is not None else None
    # asking for the default without allow_none would fix it for the whole process
    chosen = chosen or multiprocessing.get_start_method(allow_none=True)
    return str(chosen or multiprocessing.get_all_start_methods()[0])
