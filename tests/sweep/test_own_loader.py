"""A function of the user creates a loader for each setting."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.loaders.instrument.batch_size import epochs
from pipeprof.model import SweepSpec
from pipeprof.sweep.own_loader import OwnLoader
from pipeprof.sweep.plan import TrialSetting, check, grid
from pipeprof.sweep.trial import LEAST_BATCHES, measure_headspace, run_trial

HEAD = "from torch.utils.data import DataLoader\nDATA = list(range(10))\n"
SETTING = TrialSetting("", 4, 2, 3)


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        (tmp_path / "mine.py").write_text(HEAD + text)
        return f"{tmp_path / 'mine.py'}:make"

    return write


def test_the_function_is_called_with_the_arguments_it_takes(written: Any) -> None:
    text = written(
        "def make(num_workers, prefetch_factor=None, batch_size=1, **more):\n"
        "    return DataLoader(DATA, batch_size, num_workers=num_workers,\n"
        "                      prefetch_factor=prefetch_factor)\n"
    )
    loader = OwnLoader(text).make(SETTING)
    assert (loader.num_workers, loader.prefetch_factor, loader.batch_size) == (2, 3, 4)
    inline = OwnLoader(text).make(TrialSetting("", 4, 0, None))
    assert (inline.num_workers, inline.prefetch_factor) == (0, None)


def test_arguments_it_does_not_take_cannot_be_varied(written: Any) -> None:
    text = written(
        "def make(num_workers):\n    return DataLoader(DATA, 5, num_workers=num_workers)\n"
    )
    own = OwnLoader(text)
    assert own.make(SETTING).batch_size == 5
    own.check(("num_workers",))
    with pytest.raises(UsageError, match="does not take batch_size, so it cannot be varied"):
        own.check(("num_workers", "batch_size"))


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("def make(workers):\n    pass\n", UsageError, "does not take num_workers"),
        ("def make(num_workers):\n    return DATA\n", UsageError, "returned list; it must return"),
        ("def make(num_workers):\n    return DataLoader(DATA)\n", UsageError,
         "called with num_workers=2, but its DataLoader has num_workers=0; pass it on"),
        ("def make(num_workers):\n    return 1 / 0\n", PipeprofError,
         r"failed at .*mine.py:4: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_errors_of_the_function_are_explained(
    written: Any, code: str, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        OwnLoader(written(code)).make(SETTING)


def test_epoch_follows_epoch_until_one_is_empty() -> None:
    assert list(islice(epochs([1, 2, 3]), 7)) == [1, 2, 3, 1, 2, 3, 1]
    assert list(epochs([])) == []
    assert list(epochs(iter([1, 2]))) == [1, 2], "used up"


SLEEPING = (
    "import time\n"
    "class Sleeping:\n"
    "    def __len__(self):\n"
    "        return 96\n"
    "    def __getitem__(self, index):\n"
    "        time.sleep(0.0025)\n"
    "        return index\n"
    "def make(num_workers, prefetch_factor=None):\n"
    "    return DataLoader(Sleeping(), 4, num_workers=num_workers,\n"
    "                      prefetch_factor=prefetch_factor, persistent_workers=num_workers > 0)\n"
)
"""An epoch of 24 batches, each of which takes 10 ms to make."""


@pytest.mark.timed
@pytest.mark.parametrize(
    "setting", [TrialSetting("mine", None, 0, None), TrialSetting("mine", None, 2, 2)]
)
def test_a_trial_of_it_runs_over_epochs(written: Any, setting: TrialSetting) -> None:
    spec = SweepSpec(("mine",), (0, 2), (2,), (), 0.0, trial_s=0.5, warmup_s=0.1,
                     loader=written(SLEEPING))  # fmt: skip
    profile, recording, traffic = run_trial(spec, setting)
    assert (profile.name, traffic) == ("mine", None)
    assert (profile.config.num_workers, profile.config.batch_size) == (setting.num_workers, 4)
    assert profile.measured_batches >= LEAST_BATCHES / 2, "less the beginnings of epochs"
    assert len(set(recording.batches.epoch)) > 1, "more than an epoch, as one is too short"
    made_s = profile.stages["fetch"].mean_s
    assert 0.010 <= made_s < 0.030
    assert not profile.diagnosis.has_step, "none is emulated"
    assert any("was not prepared" in note for note in profile.notes)


def test_an_error_of_the_analysis_is_not_blamed_on_the_loader(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a fault of the analysis")

    monkeypatch.setattr("pipeprof.sweep.trial.assemble", broken)
    spec = SweepSpec(("mine",), (0,), (2,), (), 0.0, trial_s=0.1, warmup_s=0.0,
                     loader=written(SLEEPING))  # fmt: skip
    with pytest.raises(RuntimeError, match="a fault of the analysis"):
        run_trial(spec, TrialSetting("mine", None, 0, None))


def test_its_batch_sizes_may_be_left_to_it() -> None:
    spec = SweepSpec(("mine",), (0, 1), (2, 4), (), 0.0, loader="mine.py:make")
    assert grid(spec, spec.urls) == (
        TrialSetting("mine", None, 0, None),
        TrialSetting("mine", None, 1, 2),
        TrialSetting("mine", None, 1, 4),
    )
    with pytest.raises(UsageError, match="--transform"):
        check(replace(spec, transform="mine.py:change"))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_while_iterating_is_one_sentence(
    written: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so long torch waits for the workers of a loader that has failed: 5 s
    monkeypatch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 0.5)
    text = written(
        "class Broken(list):\n"
        "    def __getitem__(self, index):\n"
        "        raise ValueError('no such image')\n"
        "def make(num_workers):\n"
        "    return DataLoader(Broken(DATA), num_workers=num_workers)\n"
    )
    spec = SweepSpec(("mine",), (workers,), (2,), (), 0.0, loader=text)
    with pytest.raises(PipeprofError, match=r"make failed .*: ValueError: no such image$"):
        run_trial(spec, TrialSetting("mine", None, workers, None))
    with pytest.raises(PipeprofError, match=r"make failed .*: ValueError: no such image$"):
        measure_headspace(spec, TrialSetting("mine", None, workers, None))
    gc.collect()  # the traceback kept the loader, which would wait those 5 s later


@pytest.mark.parametrize("run", [run_trial, measure_headspace])
def test_an_error_of_the_step_is_one_sentence(written: Any, run: Any) -> None:
    text = written(
        "def make(num_workers):\n    return DataLoader(DATA, num_workers=num_workers)\n"
        "def step(batch):\n    raise ValueError('loss is NaN')\n"
    )
    step = text.replace(":make", ":step")
    spec = SweepSpec(("mine",), (0,), (2,), (), None, step=step, loader=text)
    with pytest.raises(PipeprofError, match=r"step failed at .*mine\.py:6: ValueError: loss is"):
        run(spec, TrialSetting("mine", None, 0, None))
