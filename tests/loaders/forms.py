"""Data sets whose batches say where and when they were made, and stand-ins for other loaders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter, sleep
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

import pipeprof
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.wrap import ProfiledLoader
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock

SAMPLES = 40
_FRAMEWORK = """
from torch.utils.data import DataLoader

def prepare(loader, dataset=None, **options):
    dataset = loader.dataset if dataset is None else dataset
    return DataLoader(dataset, loader.batch_size, num_workers=loader.num_workers, **options)
"""


def prepared(loader: Any, **options: Any) -> DataLoader:
    """Build another loader in the place of ``loader``, as a framework does: in installed code, with
    only those options that it knows."""
    framework: dict[str, Any] = {}
    exec(compile(_FRAMEWORK, "/lib/site-packages/framework.py", "exec"), framework)
    return framework["prepare"](loader, **options)


def profiled(loader: Any, clock: Clock, whole: bool = False) -> ProfiledLoader:
    """Wrap ``loader`` as `pipeprof.wrap` does, but on ``clock``. Each worker has its own copy of
    the clock. Durations there are exact, but their moments cannot be compared with main's."""
    wrapped = pipeprof.wrap(loader)
    object.__setattr__(wrapped, "_profiler", LoaderProfiler("loader", whole=whole, clock=clock))
    return wrapped


def mark(index: int) -> torch.Tensor:
    """Return a sample that holds its index, its worker (-1 in main), and the time at which it was
    made."""
    info = get_worker_info()
    return torch.tensor([index, info.id if info else -1, perf_counter()], dtype=torch.float64)


class Marked(Dataset):
    def __init__(self, pause_s: float = 0.0) -> None:
        self.pause_s = pause_s

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        if self.pause_s:
            sleep(self.pause_s)
        return mark(index)


class MarkedItems(Marked):
    """Returns a whole batch at once."""

    def __getitems__(self, indices):
        return [mark(index) for index in indices]


class MarkedStream(IterableDataset):
    """Each worker streams its own share."""

    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id if info else 0, SAMPLES, info.num_workers if info else 1):
            yield mark(index)


class Act(Dataset):
    """Calls ``act(index)`` for each sample, which holds its index."""

    def __init__(self, act: Callable[[int], object], length: int = 80) -> None:
        self.act, self.length = act, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.act(index)
        return torch.tensor([index])


class Backwards(Sampler):
    """Draws the indices in reverse order, and takes ``pause_s`` for each."""

    def __init__(
        self, pause_s: float = 0.0, length: int = SAMPLES, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.pause_s, self.length, self.clock = pause_s, length, clock

    def __len__(self):
        return self.length

    def __iter__(self):
        for index in reversed(range(self.length)):
            if self.pause_s:
                self.clock.sleep(self.pause_s)
            yield index


class Growing(Sampler):
    """Draws batches of 1, 2, 3 … samples, and has no length."""

    def __init__(self, length: int = SAMPLES) -> None:
        self.length = length

    def __iter__(self):
        start, size = 0, 1
        while start + size <= self.length:
            yield list(range(start, start + size))
            start, size = start + size, size + 1


class SlowToSend:
    """A batch that takes ``pause_s`` to be pickled."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s

    def __reduce__(self):
        sleep(self.pause_s)
        return SlowToSend, (self.pause_s,)


class SlowToReceive:
    """A batch that takes ``pause_s`` to be unpickled."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s

    def __getstate__(self):
        return self.pause_s

    def __setstate__(self, pause_s):
        sleep(pause_s)
        self.pause_s = pause_s


class Dali:
    """Behaves as DALI's iterator for PyTorch. It is its own iterator, yields a list with a dict per
    pipeline, and needs a ``reset`` before the next epoch."""

    batch_size = 8

    def __init__(self, batches: int, pause_s: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._batches, self._pause_s, self._done, self._clock = batches, pause_s, 0, clock

    def __iter__(self):
        return self

    def __next__(self) -> list[dict[str, torch.Tensor]]:
        if self._done == self._batches:
            raise StopIteration
        self._done += 1
        self._clock.sleep(self._pause_s)
        return [{"data": torch.zeros(8, 3), "label": torch.zeros(8)}]

    next = __next__

    def reset(self) -> None:
        self._done = 0


class Pipeline:
    """Behaves as WebDataset's loader or an iterable data set of Hugging Face. Each call of ``iter``
    starts from the beginning, and there is no length."""

    def __init__(self, batches: int, pause_s: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._batches, self._pause_s, self._clock = batches, pause_s, clock

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number in range(self._batches):
            self._clock.sleep(self._pause_s)
            yield {"text": [f"{number}"] * 8, "ids": torch.zeros(8, 5)}


def pretend_accelerator(
    monkeypatch: pytest.MonkeyPatch, pin_s: float, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Let torch find an accelerator, so that it runs its pin thread; pinning takes ``pin_s``."""

    def pin(data: Any, device: object = None) -> Any:
        clock.sleep(pin_s)
        return data

    monkeypatch.setattr("torch.utils.data._utils.pin_memory.pin_memory", pin)
    for name, answer in {
        "is_available": True,
        "current_accelerator": torch.device("cpu"),
        "current_device_index": 0,
        "set_device_index": None,
    }.items():
        monkeypatch.setattr(torch.accelerator, name, lambda *_, answer=answer: answer)


def bits(thing: Any) -> Any:
    """Return ``thing`` with each tensor as type, shape and bytes, to compare it bit by bit."""
    if isinstance(thing, torch.Tensor):
        return thing.dtype, tuple(thing.shape), thing.numpy().tobytes()
    if isinstance(thing, dict):
        return {key: bits(value) for key, value in thing.items()}
    return [bits(one) for one in thing] if isinstance(thing, list | tuple) else thing


def whose(batch: torch.Tensor) -> int:
    """Return the worker that made a marked batch."""
    return int(batch.reshape(-1, 3)[0, 1])


def assert_recorded(
    loader: Any, batches: list[torch.Tensor], sent: bool = True, first_arrival: bool = True
) -> None:
    """Check the records of these marked ``batches``, which are all that ``loader`` delivered. A
    record names the worker, encloses the moments at which its samples were made, and is in causal
    order. ``sent`` says that workers made them. ``first_arrival`` says that the arrival of the very
    first is known too."""
    log = loader.recording().batches
    delivered = sorted(range(len(log.index)), key=log.delivered_s.__getitem__)
    for place, batch in zip(delivered, batches, strict=True):
        assert log.worker[place] == whose(batch)
        assert log.samples[place] == len(batch)
        moments = [log.fetch_start_s[place], *batch.reshape(-1, 3)[:, 2].tolist()]
        moments += [log.fetch_end_s[place]]
        if sent:
            moments += [log.sent_s[place], log.received_s[place]]
            moments += [log.arrived_s[place]] if place or first_arrival else []
        if log.pinned_s:
            moments += [log.pinned_s[place]]
        moments += [log.delivered_s[place], log.done_s[place]]
        assert None not in moments, (place, moments)
        assert moments == sorted(moments), (place, moments)


class Around:
    """Adds to each batch in the main process, as the iterators of PyG do."""

    def __init__(self, iterator: Any, add: Callable[[Any], Any]) -> None:
        self.iterator, self.add = iterator, add

    def __iter__(self) -> Around:
        return self

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self.iterator._reset(loader, first_iter)

    def __next__(self) -> Any:
        return self.add(next(self.iterator))


class AddsInMain(DataLoader[Any]):
    def _get_iterator(self) -> Any:
        return Around(super()._get_iterator(), lambda batch: batch + 1000)
