"""torch's own dispatch rules on a fake clock: its iterator's real code, over workers that only
compute when they would be done. What `pipeprof.analyze.predict.dataloader_sim` is held to."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any

from torch.utils.data import dataloader

from pipeprof.analyze.predict.workload import Demand, Setting

Moments = tuple[float, float, float]


class FakeWorkers:
    """Each makes its tasks one after another, and sends them beside; nothing slows another."""

    def __init__(self, demands: Sequence[Demand], count: int, pins: bool) -> None:
        self.now = 0.0
        self._demands = demands
        self._made = [0.0] * count
        """When that worker will have made all it was asked for."""
        self._sent = [0.0] * count
        self._results: list[tuple[float, int]] = []
        self._pins, self._pinned = pins, 0.0
        """Whether a thread pins, and when it will have pinned all it has received."""

    def queue(self, worker: int) -> Any:
        return SimpleNamespace(put=lambda task: self._dispatched(worker, task[0]))

    def _dispatched(self, worker: int, number: int) -> None:
        demand = self._demands[number]
        made_s = max(self.now, self._made[worker]) + demand.latency_s + demand.cpu_s
        self._made[worker] = made_s
        self._sent[worker] = max(made_s, self._sent[worker]) + demand.send_s
        heappush(self._results, (self._sent[worker], number))

    def receive(self) -> tuple[int, int]:
        """The next result, waited for."""
        sent_s, number = heappop(self._results)
        if self._pins:
            demand = self._demands[number]
            self._pinned = max(self._pinned, sent_s) + demand.receive_s + demand.pin_s
            self.now = max(self.now, self._pinned) + demand.take_s
        else:
            self.now = max(self.now, sent_s) + self._demands[number].receive_s
        return number, number


def run_of_torch(demands: Sequence[Demand], setting: Setting) -> list[tuple[int, Moments]]:
    """Which batch was delivered, and when it was asked for, delivered, done with."""
    workers = FakeWorkers(demands, setting.num_workers, setting.pin_memory)
    torchs: Any = dataloader._MultiProcessingDataLoaderIter
    iterator = torchs.__new__(torchs)
    vars(iterator).update(
        _dataset=None, _dataset_kind=dataloader._DatasetKind.Map, _pin_memory=False,
        _index_sampler=range(len(demands)), _num_workers=setting.num_workers,
        _prefetch_factor=setting.prefetch_factor, _in_order=setting.in_order,
        _persistent_workers=True, _shutdown=False, _workers=[], _profile_name="fake",
        _index_queues=[workers.queue(worker) for worker in range(setting.num_workers)],
        _get_data=workers.receive,
    )  # fmt: skip
    iterator._reset(SimpleNamespace(_IterableDataset_len_called=None), first_iter=True)
    delivered, asked_s = [], 0.0
    for number in iterator:
        moment = workers.now
        workers.now += demands[number].step_cpu_s + demands[number].step_s
        delivered.append((number, (asked_s, moment, workers.now)))
        asked_s = workers.now
    vars(iterator)["_shutdown"] = True  # it has no processes to end
    return delivered
