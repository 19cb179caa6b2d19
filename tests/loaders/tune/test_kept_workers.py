"""Workers stay between epochs only while they have what new ones would get, and if that is worth
it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from pipeprof.loaders.tune.kept_workers import KeptWorkers
from pipeprof.measure.clock import FakeClock


class Scaled(Dataset[torch.Tensor]):
    def __init__(self) -> None:
        self.scale = 1.0

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index * self.scale])

    def __len__(self) -> int:
        return 8


class Epochs:
    """Epochs of 100 s, whose first batch comes after ``start_s`` if workers start."""

    def __init__(self, data: Any, start_s: float = 5.0, allowed: bool = True) -> None:
        self.data, self._start_s, self._clock = data, start_s, FakeClock()
        self.kept = KeptWorkers(DataLoader(data), allowed, self._clock.now)

    def run(self, change: float | None = None) -> tuple[bool, bool]:
        """Return whether workers of the epoch before were used, and whether they stay after it.
        Within the epoch the scale of the data set becomes ``change``."""
        used = self.kept.begin()
        self._clock.sleep(0.0 if used else self._start_s)
        self.kept.delivered()
        self._clock.sleep(100.0)
        if change is not None:
            self.data.scale = change
        return used, self.kept.end(workers_started=not used)


def test_workers_stay_where_their_start_takes_a_share_of_the_epoch() -> None:
    epochs = Epochs(Scaled())
    assert [epochs.run() for _ in range(3)] == [(False, True), (True, True), (True, True)]
    assert (epochs.kept.started_s, epochs.kept.continued_s) == (5.0, 0.0)


def test_workers_that_start_soon_do_not_stay() -> None:
    epochs = Epochs(Scaled(), start_s=0.5)
    assert [epochs.run() for _ in range(2)] == [(False, False), (False, False)]


@pytest.mark.parametrize("when", ["within an epoch", "between epochs"])
def test_a_data_set_that_changed_gets_new_workers(when: str) -> None:
    epochs = Epochs(Scaled())
    epochs.run(change=2.0 if when == "within an epoch" else None)
    if when == "between epochs":
        epochs.data.scale = 2.0
    assert [epochs.run(), epochs.run()] == [(False, True), (True, True)]


def test_a_data_set_that_cannot_be_compared_gets_new_workers() -> None:
    data = Scaled()
    data.scale = lambda: 1.0  # type: ignore[assignment]  # cannot be pickled
    epochs = Epochs(data)
    assert [epochs.run(), epochs.run()] == [(False, False), (False, False)]


def test_workers_do_not_stay_where_that_is_not_allowed() -> None:
    epochs = Epochs(Scaled(), allowed=False)
    assert [epochs.run(), epochs.run()] == [(False, False), (False, False)]
