"""What a thread waits for that takes batches ahead of training is no verdict on training."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.cli.output import raise_if_starved
from pipeprof.errors import ProfileError
from pipeprof.report.metrics import metrics
from pipeprof.sizing.sources import from_profile
from tests.loaders.forms import Marked

FETCH_S, STEP_S = 0.002, 0.015
"""Seconds to make a sample, of which a batch has two, and of a training step."""


class TakenAhead:
    """An iterator whose thread takes from another one and puts into a queue."""

    def __init__(self, batches: Any) -> None:
        self._batches, self._queue = batches, queue.Queue[Any](2)
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        for batch in self._batches:
            self._queue.put(batch)
        self._queue.put(None)

    def __iter__(self) -> TakenAhead:
        return self

    def __next__(self) -> Any:
        batch = self._queue.get()
        if batch is None:
            raise StopIteration
        return batch


class InBackground(DataLoader[Any]):
    """Passes on batches from a thread, as many training scripts do to hide what main does."""

    def __iter__(self) -> Any:
        return TakenAhead(super().__iter__())


def around_the_generator(loader: Any) -> Iterator[Any]:
    return iter(TakenAhead(batch for batch in loader))


def data_loader(kind: Any = DataLoader) -> Any:
    return kind(Marked(FETCH_S), 2)


def train(batches: Any, step_s: float = STEP_S) -> None:
    for _ in range(3):
        for _ in batches():
            sleep(step_s)


@pytest.mark.parametrize("iterate", [iter, TakenAhead, around_the_generator])
def test_the_verdict_is_left_open(iterate: Callable[[Any], Any]) -> None:
    kind = InBackground if iterate is iter else DataLoader
    loader = pipeprof.wrap(data_loader(kind))
    train(lambda: iterate(loader))
    profile = loader.profile()
    diagnosis = profile.diagnosis
    assert (diagnosis.verdict, diagnosis.unjudged, diagnosis.more_batches) == (
        "inconclusive", "taken-ahead", None
    )  # fmt: skip
    assert "iter(loader), or a queue's get" in " ".join(str(profile).split())
    assert not any("starved" in name for name in metrics(profile))
    assert not {"starved_fraction", "step_s"} & from_profile(profile, "a.json").keys()
    assert "accelerator" not in profile.ceilings
    assert not profile.worth
    with pytest.raises(ProfileError, match="takes the batches ahead"):
        raise_if_starved(profile, "a.json", 0.1)


def test_the_iterator_of_such_a_loader_can_be_wrapped() -> None:
    wrapped = []

    def batches() -> Any:
        wrapped.append(pipeprof.wrap(iter(data_loader(InBackground))))
        return wrapped[-1]

    train(batches, step_s=4 * FETCH_S)
    diagnosis = wrapped[0].profile().diagnosis
    assert not diagnosis.unjudged
    assert diagnosis.starved_fraction < 0.2


def test_a_training_loop_in_a_thread_is_one() -> None:
    loader = pipeprof.wrap(data_loader())
    thread = threading.Thread(target=train, args=(lambda: loader,))
    thread.start()
    thread.join()
    diagnosis = loader.profile().diagnosis
    assert (diagnosis.verdict, diagnosis.unjudged) == ("starved", "")


def test_where_the_thread_never_waits_for_room_the_loader_is_the_limit() -> None:
    loader = pipeprof.wrap(data_loader())
    train(lambda: TakenAhead(loader), step_s=0.0)
    diagnosis = loader.profile().diagnosis
    assert (diagnosis.has_step, diagnosis.unjudged) == (False, "")
    assert "training takes all" in diagnosis.headline


@pytest.mark.timed
def test_what_waits_at_the_queue_is_measured_through_its_get() -> None:
    batches = queue.Queue[int](2)

    def fill() -> None:
        for number in range(60):
            sleep(0.010)
            batches.put(number)

    thread = threading.Thread(target=fill)
    thread.start()
    get = pipeprof.wrap(batches.get)
    for number in range(60):
        assert get() == number
        sleep(0.002)
    thread.join()
    assert get.profile().diagnosis.starved_fraction == pytest.approx(0.8, abs=0.1)
