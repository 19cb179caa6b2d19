"""The user's loader with other settings, for a part of an epoch."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import signal_handling

from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.torchs_iterator import torchs_within
from pipeprof.loaders.tune.native_threads import limit_threads
from pipeprof.loaders.tune.order import EpochOrder, PartOfEpoch
from pipeprof.model import TunedSetting

HANGS_S = 60.0
"""A worker that takes longer for a batch is taken to hang."""
_DIES_WITHIN_S = 1.0
_BROKEN = (ConnectionError, EOFError, FileNotFoundError)
"""What torch raises where a worker ends while it hands over a batch: it, its data, or the socket
that it listens on is gone."""


def setting_of(loader: DataLoader[Any]) -> TunedSetting:
    """Return what ``loader`` is set to."""
    data = loader.dataset
    return TunedSetting(
        loader.num_workers, loader.prefetch_factor, bool(loader.pin_memory),
        in_order=getattr(loader, "in_order", True),  # torch 2.4 and 2.5 have none
        read=data.read_options if isinstance(data, FileDataset) else None,
    )  # fmt: skip


def is_variant(loader: DataLoader[Any]) -> bool:
    """Return whether ``loader`` was made by `Variant`."""
    return "_is_variant_of_pipeprof" in vars(loader)


class Variant:
    """``loader`` with another ``setting``. Its workers live until `end`, between its parts too.

    It is a copy of the user's object, so that a subclass keeps what it overrides.
    """

    def __init__(
        self,
        loader: DataLoader[Any],
        setting: TunedSetting,
        order: EpochOrder,
        may_fail: bool = False,
        name: str = "loader",
    ) -> None:
        """``may_fail``: another setting can continue if a worker dies, so training must not end.
        Where ``loader`` has no workers, those of another setting may hang, as libraries do in forks
        of a process that used them; until `trust`, a batch must come within `HANGS_S`."""
        self.setting = setting
        self._may_fail = may_fail
        self.part = PartOfEpoch(order)
        self.profiler = LoaderProfiler(name)
        self._context = loader.multiprocessing_context or multiprocessing
        self._started = self._context.Semaphore(0)
        self._init, self._timeout = loader.worker_init_fn, loader.timeout
        # not by `copy`, which would call the `__new__` of its class
        self._loader: DataLoader[Any] = object.__new__(type(loader))
        sampler = "sampler" if loader.batch_sampler is None else "batch_sampler"
        # torch refuses to set these on a loader that exists
        vars(self._loader).update(
            vars(loader),
            num_workers=setting.num_workers,
            prefetch_factor=setting.prefetch_factor,
            persistent_workers=setting.num_workers > 0,
            pin_memory=setting.pin_memory,
            worker_init_fn=self._report_start(),
            _iterator=None,
            timeout=HANGS_S if setting.num_workers and not loader.num_workers else loader.timeout,
            _is_variant_of_pipeprof=True,
            **{sampler: self.part},
        )
        if not setting.in_order:
            vars(self._loader).update(in_order=False)
        if setting.read is not None:
            data = cast(FileDataset, loader.dataset).with_read_options(setting.read)
            vars(self._loader).update(dataset=data)

    @property
    def running(self) -> bool:
        """Whether its workers were started. A loader without workers always runs."""
        return not self.setting.num_workers or self._iterator is not None

    @property
    def ready(self) -> bool:
        """Whether all its workers wait for indices."""
        return self.running and self._started.get_value() >= self.setting.num_workers

    @property
    def lost_worker(self) -> bool:
        """Whether one of its workers died."""
        workers = getattr(self._iterator, "_workers", ())
        return any(not worker.is_alive() for worker in workers)

    def await_death(self, error: Exception) -> None:
        """Wait for the end of the worker whose broken connection ``error`` tells of, if it does.

        A process that is killed closes its connections, and the one of its sentinel, shortly before
        others can see its end.
        """
        if not isinstance(error, _BROKEN) or not getattr(self._iterator, "_workers", ()):
            return
        until_s = time.monotonic() + _DIES_WITHIN_S
        while not self.lost_worker and time.monotonic() < until_s:
            time.sleep(0.005)

    def start(self, seeds: torch.Generator) -> None:
        """Start its workers, which take their seed from ``seeds``; they fetch nothing yet.

        Raises:
            Exception: What starting a process raises.
        """
        self._loader.generator = seeds
        if not self.running:
            with warnings.catch_warnings():  # torch's, of trials
                warnings.filterwarnings("ignore", "This DataLoader will create")
                warnings.filterwarnings("ignore", "Got pickle error")
                self.profiler.start_workers(self._loader)
            if self._may_fail:
                self.ignore_deaths()

    @property
    def trusted(self) -> bool:
        """Whether its workers may do what those of the user's loader may."""
        return bool(vars(self._loader)["timeout"] == self._timeout)

    def trust(self) -> None:
        """Wait for batches as long as the user's loader does."""
        vars(self._loader)["timeout"] = self._timeout
        if self._iterator is not None:
            self._iterator._timeout = self._timeout

    def fetch(self) -> Iterator[Any]:
        """Fetch all that its part of the epoch gives."""
        return self.profiler.iterate(self._loader, lambda: iter(self._loader))

    def end(self) -> None:
        """End its workers."""
        if self._iterator is not None:
            self._iterator._shutdown_workers()  # errors may still refer to it
        vars(self._loader)["_iterator"] = None
        self._started = self._context.Semaphore(0)
        self._loader.worker_init_fn = self._report_start()

    def delivered(self) -> None:
        """Note that a batch of its part was delivered, or failed."""
        self.part.delivered(() if self.setting.in_order else self._iterator._task_info)

    def _report_start(self) -> ReportStart:
        return ReportStart(self._init, self._started, self.setting.threads)

    def ignore_deaths(self) -> None:
        """Do not let torch raise an error in the training loop if a worker dies.

        torch raises it from a signal handler, wherever the training loop is at that moment. Without
        it the death is noticed when the next batch is waited for.
        """
        iterator, handler = self._iterator, cast(Any, signal_handling)
        if iterator is not None and iterator._worker_pids_set:
            handler._remove_worker_pids(id(iterator))
            iterator._worker_pids_set = False

    def heed_deaths(self) -> None:
        """Let torch raise its errors again."""
        iterator, handler = self._iterator, cast(Any, signal_handling)
        if iterator is not None and not iterator._worker_pids_set:
            handler._set_worker_pids(id(iterator), tuple(each.pid for each in iterator._workers))
            iterator._worker_pids_set = True

    @property
    def _iterator(self) -> Any:
        return torchs_within(vars(self._loader)["_iterator"])


class ReportStart:
    """A ``worker_init_fn`` that runs the user's ``own``, limits the ``threads`` of libraries, and
    then counts the worker as started."""

    def __init__(
        self, own: Callable[[int], None] | None, started: Any, threads: int | None
    ) -> None:
        self.own = own
        self._started, self._threads = started, threads

    def __call__(self, worker: int) -> None:
        if self.own is not None:
            self.own(worker)
        if self._threads is not None:
            limit_threads(self._threads)
        self._started.release()
