"""Each setting that tuning changes is that of the workers, and changes nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from threadpoolctl import threadpool_info
from torch.utils.data import DataLoader, get_worker_info

import pipeprof
from pipeprof.loaders.tune.order import EpochOrder
from pipeprof.loaders.tune.variant import Variant, setting_of
from pipeprof.model import TunedSetting
from tests.loaders.tune.tuned import Slow, samples, tuned

pytestmark = pytest.mark.timed


class Uneven(Slow):
    """One sample in eight takes long, so that others overtake it."""

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.01 if index % 8 == 0 else 0.0)
        return torch.tensor([index])


def test_a_loader_that_is_tried_out_of_order_loses_and_repeats_no_sample() -> None:
    loader = DataLoader(Uneven(), batch_size=1, num_workers=2, prefetch_factor=2)
    out_of_order = tuned(loader, TunedSetting(2, 2, in_order=False))
    found = samples(out_of_order)
    assert sorted(found) == [*range(1600)]
    assert found != [*range(1600)]
    (tried,) = out_of_order.tuning().tried
    assert tried.error is None


def test_the_order_may_change_only_where_it_is_asked_for() -> None:
    loader = DataLoader(Slow(), batch_size=8, num_workers=1)
    for any_order in (False, True):
        tuner = pipeprof.tune(loader, any_order=any_order)._tuner
        bounds = tuner.live._propose.keywords["bounds"]
        assert ("in_order" not in bounds.fixed) == any_order


class Threads(Slow):
    """A sample is the number of threads of Arrow, and the most of any library of NumPy's."""

    def __getitem__(self, index: int) -> torch.Tensor:
        np.ones((2, 2)) @ np.ones((2, 2))
        pools = [each["num_threads"] for each in threadpool_info()]
        return torch.tensor([pa.cpu_count(), max(pools, default=1)])


def test_workers_run_with_the_threads_that_are_set() -> None:
    pa.set_cpu_count(3)
    loader = DataLoader(Threads(4), batch_size=4, num_workers=1)
    order = EpochOrder(loader)
    variant = Variant(loader, TunedSetting(1, 2, threads=2), order)
    variant.start(order.begin())
    variant.part.open()
    assert next(variant.fetch()).max().item() == 2
    variant.end()
    assert pa.cpu_count() == 3


def test_the_rows_of_a_file_stay_the_same_however_they_are_read(tmp_path: Path) -> None:
    lines = "\n".join(f"{n},{n % 7}" for n in range(5000))
    (tmp_path / "a.csv").write_text(f"x,y\n{lines}\n")
    read = pipeprof.ReadOptions(split_bytes=4096, block_bytes=4096, read_ahead=False)
    data = pipeprof.open_dataset(f"{tmp_path}", batch_size=50, read=read, shuffle=True, seed=4)
    other = data.with_read_options(pipeprof.ReadOptions(2**12, 2**12, queue_depth=16))
    other.set_epoch(3)
    assert [[*each["x"]] for each in other] == [[*each["x"]] for each in data]


def test_a_data_set_of_files_is_tuned_between_epochs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "\n".join(map(str, range(3000))) + "\n")
    read = pipeprof.ReadOptions(split_bytes=2048, block_bytes=2048, read_ahead=False)
    data = pipeprof.open_dataset(f"{tmp_path}", batch_size=10, read=read)
    loader = DataLoader(data, batch_size=None, num_workers=1)
    ahead = pipeprof.ReadOptions(split_bytes=2048, block_bytes=2048)
    files = tuned(
        loader, TunedSetting(1, 2, read=ahead), TunedSetting(2, 2, read=read), within_epochs=False
    )
    assert setting_of(loader).read == read
    while files.tuning().state == "searching":
        assert sorted(int(x) for batch in files for x in batch["x"]) == [*range(3000)]
    assert [each.setting.read for each in files.tuning().tried] == [ahead, read]
    assert not any(each.error for each in files.tuning().tried)
    notes = str(pipeprof.tune(loader).tuning())
    assert "between epochs only" in notes
    assert "batches hold other rows together" in notes


class Process(Slow):
    """A sample is the seed of its worker, which tells the worker from any other."""

    scale = 1

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.001)
        worker = get_worker_info()
        return torch.tensor([worker.seed if worker else 0])


def test_workers_stay_between_epochs_while_the_data_set_does_not_change() -> None:
    data = Process(160)
    loader = tuned(DataLoader(data, batch_size=8, num_workers=1), may_keep_workers=True)
    first, second = {*samples(loader)}, {*samples(loader)}
    assert first == second
    assert "workers stay between epochs" in str(loader.tuning())
    data.scale = 2
    third, fourth = {*samples(loader)}, {*samples(loader)}
    assert third != second
    assert fourth == third
    del loader


def test_workers_end_with_their_epoch_where_that_is_asked_for() -> None:
    loader = pipeprof.tune(
        DataLoader(Process(160), batch_size=8, num_workers=1), fixed={"persistent_workers": False}
    )
    assert {*samples(loader)} != {*samples(loader)}
