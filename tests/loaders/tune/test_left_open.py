"""A data set that ran in the training process is not forked with what it has open there."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

import pipeprof
from pipeprof.loaders.tune import left_open, variant
from pipeprof.loaders.tune.left_open import LeftOpen
from pipeprof.model import TunedSetting
from tests.loaders.tune.tuned import Slow, samples, tuned

pytestmark = [
    pytest.mark.timed,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
NONE, TWO = TunedSetting(0, None), TunedSetting(2, 2)
COUNT = 3000


class KeepsOpen(Dataset[torch.Tensor]):
    """Opens its file when the first sample is asked for, as many data sets do."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, None
        path.write_bytes(b"".join(struct.pack("<q", index) for index in range(COUNT)))

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> torch.Tensor:
        self._file = self._file or self._path.open("rb", buffering=0)
        self._file.seek(8 * index)
        time.sleep(0.001)  # others move the position of a file that is shared
        return torch.tensor(struct.unpack("<q", self._file.read(8)))


def test_forks_never_share_an_open_file(tmp_path: Path) -> None:
    data = KeepsOpen(tmp_path / "numbers.bin")
    loader = pipeprof.tune(DataLoader(data, 8))
    assert samples(loader) == list(range(COUNT))
    data._file.close()
    tuning = loader.tuning()
    assert (tuning.chosen, tuning.tried) == (NONE, ()), tuning
    assert "the data set keeps numbers.bin open: workers forked now would be wrong" in str(tuning)


def test_where_workers_open_it_they_are_tuned(tmp_path: Path) -> None:
    data = KeepsOpen(tmp_path / "numbers.bin")
    loader = tuned(DataLoader(data, 8, num_workers=1), TWO)
    assert samples(loader) == list(range(COUNT))
    assert [each.setting for each in loader.tuning().tried] == [TWO]


OPENERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "file": (lambda path: path.open("rb"), "keeps f open"),
    "file to append": (lambda path: path.open("ab"), ""),
    "connection": (lambda path: socket.socket(), "keeps a socket open"),
    "pipe": (lambda path: [os.fdopen(each) for each in os.pipe()], "keeps a pipe open"),
    "thread": (lambda path: _thread(), "has started threads"),
    "file that is closed": (lambda path: path.read_bytes(), ""),
}


def _thread() -> threading.Thread:
    started = threading.Thread(target=time.sleep, args=(1.0,))
    started.start()
    return started


@pytest.mark.parametrize("name", OPENERS)
def test_what_a_fork_would_share(name: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"data")
    opener, what = OPENERS[name]
    left = LeftOpen(forks=True)
    opened = left.next(map(opener, [path]))
    for each in opened if isinstance(opened, list) else [opened]:
        for end in ("close", "join"):
            if name != "file that is closed" and hasattr(each, end):
                getattr(each, end)()
    assert left.what == (f"the data set {what}" if what else "")


def test_what_was_not_watched_is_not_known() -> None:
    for forks, what in {True: "it is not known what the data set has open", False: ""}.items():
        left = LeftOpen(forks)
        left.end_watch()
        assert left.next(iter([1])) == 1
        assert left.what == what


def test_without_proc_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_open, "_OPEN", "/nowhere")
    left = LeftOpen(forks=True)
    assert left.next(iter([1])) == 1
    assert left.what == "it is not known what the data set has open"


def test_a_library_that_hangs_in_forks_is_named_once_it_has_run(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("x\n1\n2\n")
    data = pipeprof.open_dataset(f"polars::{path}", batch_size=1)
    left = LeftOpen.by(DataLoader(data, None))
    assert not left.what
    assert left.next(iter([1])) == 1
    assert left.what == "polars has run in the training process"


class FailsInWorkers(Slow):
    def __init__(self, how: str) -> None:
        super().__init__()
        self._how = how

    def __getitem__(self, index: int) -> torch.Tensor:
        if get_worker_info() is not None:
            if self._how == "hangs":
                time.sleep(1000)
            raise RuntimeError("This class is not fork-safe")
        return super().__getitem__(index)


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_a_library_that_cannot_be_forked_fails_a_trial_and_not_the_training(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variant, "HANGS_S", 0.5)
    loader = tuned(DataLoader(FailsInWorkers(how), 8), TWO)
    assert samples(loader) == list(range(1600))
    (trial,) = loader.tuning().tried
    assert trial.error == "its workers raised RuntimeError"
    assert loader.tuning().chosen == NONE


class RaisesOnce(Slow):
    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 1500:
            raise KeyError("of the user")
        return super().__getitem__(index)


def test_an_error_of_the_data_is_raised_as_ever() -> None:
    loader = tuned(DataLoader(RaisesOnce(), 8), TWO)
    with pytest.raises(KeyError, match="of the user"):
        samples(loader)


def test_a_setting_that_is_kept_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant, "HANGS_S", 0.5)

    class Stalls(Slow):
        def __getitem__(self, index: int) -> torch.Tensor:
            if index == 7900:
                time.sleep(1.0)
            return super().__getitem__(index)

    loader = tuned(DataLoader(Stalls(8000), 8), TWO)
    assert samples(loader) == list(range(8000))
    assert loader.tuning().chosen == TWO
