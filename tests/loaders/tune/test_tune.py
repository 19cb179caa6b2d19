"""A tuned loader yields what the user's loader does, whatever becomes of a trial."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import pipeprof
from pipeprof.errors import UsageError
from pipeprof.loaders.tune.search import Candidate
from pipeprof.loaders.tune.variant import Variant
from pipeprof.model import Recording, TunedSetting
from tests.loaders.forms import AddsInMain
from tests.loaders.tune.tuned import Slow, samples, tuned, tuned_by

pytestmark = [
    pytest.mark.timed,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]


class Mortal(Slow):
    """Of three workers, each dies soon."""

    def __getitem__(self, index: int) -> torch.Tensor:
        worker = get_worker_info()
        if worker is not None and worker.num_workers == 3 and index % 7 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


def test_it_finds_workers_while_training_runs() -> None:
    loader = pipeprof.tune(DataLoader(Slow(4000), batch_size=8))
    assert samples(loader, 0.001) == [*range(4000)]
    tuning = loader.tuning()
    assert tuning.chosen.num_workers >= 2
    assert tuning.after.batches_per_s > 1.5 * tuning.before.batches_per_s
    assert "num_workers=0: failed" not in str(tuning)
    assert tuning.code in str(tuning)


def test_two_loaders_of_one_loop_are_both_tuned() -> None:
    """With either one alone made faster, the loop would only wait for the other."""
    loaders = [pipeprof.tune(DataLoader(Slow(40_000), batch_size=8, num_workers=1))
               for _ in range(2)]  # fmt: skip

    def are_faster() -> bool:
        found = [each.tuning() for each in loaders]
        rates = [(each.before, each.after, each.chosen.num_workers) for each in found]
        return all(workers >= 2 and after and after.batches_per_s > 1.5 * before.batches_per_s
                   for before, after, workers in rates)  # fmt: skip

    for number, (one, two) in enumerate(zip(*loaders, strict=True)):
        assert one.equal(two)
        time.sleep(0.001)
        if number % 200 == 199 and are_faster():
            break
    assert are_faster(), [str(each.tuning()) for each in loaders]


def test_a_loader_with_an_iterator_of_its_own_around_torchs_is_tuned() -> None:
    loader = tuned(AddsInMain(Slow(3200), 4, num_workers=1), TunedSetting(4, 2))
    assert samples(loader) == [each + 1000 for each in range(3200)]
    (tried,) = loader.tuning().tried
    assert (tried.setting.num_workers, tried.error) == (4, None)
    assert samples(loader) == [each + 1000 for each in range(3200)]


@pytest.mark.parametrize("named", [True, False])
def test_pauses_within_the_epoch_do_not_hide_starvation(named: bool) -> None:
    """They take most of the time; without them the loop waits for nearly all of its time."""
    loader = tuned(DataLoader(Slow(), batch_size=8))
    validation = pipeprof.wrap(DataLoader(Slow(8), batch_size=8))
    for number, _ in enumerate(loader):
        if number % 10 == 9 and named:
            with pipeprof.pause("validation"):
                time.sleep(0.1)
        elif number % 10 == 9:
            samples(validation, 0.06)  # too short to be found by its length
    before = loader.tuning().before
    assert before is not None
    assert before.starved_fraction > 0.9


def test_a_pause_without_a_name_does_not_hide_what_may_be_faster() -> None:
    """It is left out of the recording from which other settings are predicted."""
    recorded: list[Recording] = []

    def propose(recording: Recording, now: TunedSetting) -> Callable[[], Sequence[Candidate]]:
        recorded.append(recording)
        return lambda: ()

    loader = tuned_by(DataLoader(Slow(), batch_size=8, num_workers=1), propose)
    for number, _ in enumerate(loader):
        time.sleep(0.4 if number == 25 else 0.002)
    paused_s = [each for each in recorded[0].batches.pause_s if each]
    assert max(paused_s) == pytest.approx(0.4, abs=0.1)


def test_a_trial_whose_worker_dies_is_undone() -> None:
    loader = tuned(DataLoader(Mortal(), batch_size=8, num_workers=1), TunedSetting(3, 2))
    assert samples(loader) == [*range(1600)]
    (tried,) = loader.tuning().tried
    assert tried.error == "a worker died"
    assert loader.tuning().chosen == TunedSetting(1, 2)
    assert samples(loader) == [*range(1600)]


def test_a_trial_that_cannot_start_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Variant, seeds: torch.Generator) -> None:
        if self.setting.num_workers == 3:
            raise OSError(12, "Cannot allocate memory")
        start(self, seeds)

    start = Variant.start
    monkeypatch.setattr(Variant, "start", refuse)
    loader = tuned(DataLoader(Slow(), batch_size=8, num_workers=1), TunedSetting(3, 2))
    assert samples(loader) == [*range(1600)]
    (tried,) = loader.tuning().tried
    assert tried.error == "OSError: Cannot allocate memory"


def test_an_epoch_that_is_left_leaves_the_next_one_whole() -> None:
    loader = tuned(DataLoader(Slow(400), batch_size=8, num_workers=1), TunedSetting(2, 2))
    for number, _ in enumerate(loader):
        if number == 20:
            break
    assert samples(loader) == [*range(400)]


def test_a_second_pass_at_the_same_time_is_not_tuned() -> None:
    loader = tuned(DataLoader(Slow(80), batch_size=8), TunedSetting(1, 2))
    pairs = [(one.tolist(), two.tolist()) for one, two in zip(loader, loader, strict=True)]
    assert [one for one, _ in pairs] == [two for _, two in pairs]
    assert len(pairs) == 10


def test_an_error_of_the_data_set_is_raised_and_the_next_batch_follows() -> None:
    class Broken(Slow):
        def __getitem__(self, index: int) -> torch.Tensor:
            if index == 40:
                raise ValueError("sample 40")
            return super().__getitem__(index)

    batches = iter(tuned(DataLoader(Broken(80), batch_size=8, num_workers=1)))
    before = [next(batches).flatten().tolist() for _ in range(5)]
    with pytest.raises(ValueError, match="sample 40"):
        next(batches)
    assert before[-1] == [*range(32, 40)]
    assert samples(batches) == [*range(48, 80)]


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(5))


@pytest.mark.parametrize(
    ("loader", "reason"),
    [
        ([1, 2, 3], "list is not a torch DataLoader"),
        (DataLoader(Stream()), "its data set is iterable"),
    ],
    ids=["no DataLoader", "iterable"],
)
def test_a_loader_that_cannot_be_tuned_is_left_alone(loader: Any, reason: str) -> None:
    plain = [*loader]
    same = pipeprof.tune(loader)
    assert [*same] == plain
    assert same.tuning().state == "off"
    assert reason in str(same.tuning())


def test_a_setting_that_dies_after_it_was_kept_is_undone() -> None:
    class Late(Mortal):
        def __getitem__(self, index: int) -> torch.Tensor:
            worker = get_worker_info()
            if worker is not None and worker.num_workers == 3 and index == 4900:
                os.kill(os.getpid(), signal.SIGKILL)
            return Slow.__getitem__(self, index)

    loader = tuned(DataLoader(Late(5000), batch_size=8, num_workers=1), TunedSetting(3, 2))
    assert samples(loader) == [*range(5000)]
    assert "failed after it was kept: a worker died" in str(loader.tuning())
    assert loader.tuning().chosen == TunedSetting(1, 2)


class DiesInHandOver:
    """Its worker is killed, and the training process sees the broken connection first."""

    def __init__(self) -> None:
        self.worker = os.getpid()

    def __reduce__(self) -> Any:
        return break_connection, (self.worker,)


def break_connection(worker: int) -> None:
    threading.Timer(0.2, os.kill, (worker, signal.SIGKILL)).start()
    raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def test_one_that_dies_while_it_hands_over_a_batch_is_undone_too() -> None:
    class Late(Slow):
        def __getitem__(self, index: int) -> Any:
            worker = get_worker_info()
            dies = worker is not None and worker.num_workers == 3 and index // 8 == 600
            return DiesInHandOver() if dies else super().__getitem__(index)

    def collate(samples: list[Any]) -> Any:
        return samples[0] if isinstance(samples[0], DiesInHandOver) else torch.stack(samples)

    loader = DataLoader(Late(5000), batch_size=8, num_workers=1, collate_fn=collate)
    loader = tuned(loader, TunedSetting(3, 2))
    assert samples(loader) == [*range(5000)]
    assert "failed after it was kept: a worker died" in str(loader.tuning())


def test_what_is_fixed_stays() -> None:
    loader = DataLoader(Slow(1600), batch_size=8, num_workers=1)
    fixed = pipeprof.tune(loader, fixed={"num_workers": 2})
    assert samples(fixed) == [*range(1600)]
    assert {2} == {fixed.tuning().chosen.num_workers}
    with pytest.raises(UsageError, match="'batch_size' is not tuned; give any of num_workers"):
        pipeprof.tune(loader, fixed={"batch_size": 8})


class Augmented(Slow):
    """Each sample comes with a random number of its worker."""

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.001)
        return torch.tensor([index, torch.rand(1).item()], dtype=torch.float64)


def test_exact_random_numbers_of_workers_stay() -> None:
    def epoch(loader: Any) -> list[list[float]]:
        return [batch.flatten().tolist() for batch in loader]

    loader = DataLoader(Augmented(200), batch_size=8, num_workers=2, shuffle=True)
    exact = tuned(loader, TunedSetting(2, 4), within_epochs=False)
    epochs = []
    torch.manual_seed(5)
    while not exact.tuning().tried and len(epochs) < 100:
        epochs.append(epoch(exact))
    torch.manual_seed(5)
    assert [epoch(loader) for _ in epochs] == epochs
    assert [each.setting for each in exact.tuning().tried] == [TunedSetting(2, 4)]
    assert "between epochs only" in str(pipeprof.tune(loader, exact=True).tuning())


def test_an_error_of_ours_does_not_reach_the_training() -> None:
    def propose(recording: Recording, now: TunedSetting) -> Callable[[], Sequence[Candidate]]:
        raise ZeroDivisionError

    broken = tuned_by(DataLoader(Slow(800), batch_size=8), propose)
    assert samples(broken) == [*range(800)]
    assert broken.tuning().state == "failed"


def test_the_next_run_starts_with_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "tuned.json"
    loader = DataLoader(Slow(4000), batch_size=8)
    once = pipeprof.tune(loader, budget=1.0, tuned=file)
    while once.tuning().chosen == once.tuning().own:  # the search itself may take longer
        assert samples(once) == [*range(4000)]
    again = pipeprof.tune(loader, tuned=file)
    assert again.tuning().first == once.tuning().chosen != once.tuning().own
    assert samples(again) == [*range(4000)]
    other = pipeprof.tune(DataLoader(Slow(800), batch_size=8), tuned=file)
    assert other.tuning().first == other.tuning().own
    file.write_text("{}")
    with pytest.raises(UsageError, match="not a file of tuned settings"):
        pipeprof.tune(loader, tuned=file)


@pytest.mark.parametrize("budget", [-0.1, 1.5])
def test_a_budget_is_a_share(budget: float) -> None:
    with pytest.raises(UsageError, match="give 0 to 1"):
        pipeprof.tune(DataLoader(Slow()), budget=budget)


def test_what_cannot_be_iterated_is_refused() -> None:
    with pytest.raises(UsageError, match="not int"):
        pipeprof.tune(3)


def test_a_tuned_loader_is_returned_as_it_is() -> None:
    loader = pipeprof.tune(DataLoader(Slow(8)))
    assert pipeprof.tune(loader) is loader
    assert isinstance(loader, DataLoader)
    assert len(loader) == 8
