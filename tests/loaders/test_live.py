"""What a live view shows of a run, and when it does so."""

import io
import os
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import pipeprof
from pipeprof.loaders.instrument.host_monitor import HostMonitor
from pipeprof.loaders.live.live_pass import LiveLoader
from pipeprof.loaders.live.metrics import LiveFigures
from pipeprof.loaders.live.view import LINE_S, REPAINT_S, Live, live_view
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.pauses import NamedInterval
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.rows import COLUMNS
from pipeprof.model import PauseKind
from pipeprof.report.live import LiveView
from tests.analyze.test_blame import lying_in_main

pytestmark = pytest.mark.usefixtures("no_device")


class Numbers(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.tensor(index)


class Stream(IterableDataset):
    def __len__(self):
        raise AssertionError("torch would remember that it was asked")

    def __iter__(self):
        return iter(torch.arange(40))


def with_view(live, loader, name="train"):
    wrapped = pipeprof.wrap(loader, name)
    wrapped._profiler.live = LiveLoader(name, [live])
    return wrapped


def lines_of(clock, step_s, loader):
    file = io.StringIO()
    for _ in with_view(Live(file, now=clock.now), loader):
        clock.sleep(step_s)
    return file.getvalue().splitlines()


def test_where_there_is_no_terminal_a_line_comes_every_so_often(clock):
    found = lines_of(clock, 1.0, DataLoader(Numbers(), 1))
    assert len(found) == int(39 / LINE_S)
    for number, line in enumerate(found, 1):
        batches = int(number * LINE_S) + 1
        assert line.startswith(f"pipeprof: train, epoch 1: {batches} of 40 batches, ")
        assert "starved " in line
        assert "fetch " in line


def test_a_length_is_not_asked_of_an_iterable_data_set(clock):
    (line,) = lines_of(clock, 0.3, DataLoader(Stream(), 1))
    assert line.startswith("pipeprof: train, epoch 1: 35 batches; ")


@pytest.mark.parametrize("loader", [[1, 2, 3], (n for n in range(3))], ids=["list", "generator"])
def test_of_any_iterable_what_the_host_sees_is_shown(loader, clock):
    found = lines_of(clock, 2 * LINE_S, loader)
    assert found[-1].startswith("pipeprof: train, epoch 1: 3 batches; starved ")
    assert "step " in found[-1]


def test_a_panel_is_painted_at_most_so_often_and_wiped_at_the_end(clock, terminal):
    with open(os.dup(terminal.device), "w") as file:
        loader = DataLoader(Numbers(), 1, num_workers=1, prefetch_factor=3)
        for _ in with_view(Live(file, now=clock.now), loader):
            clock.sleep(REPAINT_S / 4)
            terminal.drain()
            panel = [line for line in terminal.lines if "pipeprof: train, epoch 1: " in line]
            assert panel == [line for line in terminal.display if line.startswith("-- ")]
        assert terminal.raw.count(b"-- pipeprof: train") == 39 // 4
        assert b"of 3 batches ready" in terminal.raw
        terminal.drain()
        assert terminal.lines == []
        assert terminal.is_whole


def test_of_two_loaders_the_one_iterated_last_is_shown_and_then_the_other_again(clock, terminal):
    with open(os.dup(terminal.device), "w") as file:
        live, shown = Live(file, now=clock.now), []
        train = with_view(live, DataLoader(Numbers(), 10), "train")
        valid = with_view(live, DataLoader(Numbers(), 10), "valid")
        for _ in train:
            clock.sleep(1)
            for _ in valid:
                clock.sleep(1)
            terminal.drain()
            shown += [line.split(":")[1] for line in terminal.display if line.startswith("-- ")]
            assert len([line for line in terminal.display if line.startswith("-- ")]) <= 1
        assert shown == [f" valid, epoch {epoch}" for epoch in (1, 2, 3, 4)]
        assert b"-- pipeprof: train, epoch 1" in terminal.raw
        terminal.drain()
        assert terminal.is_whole


@pytest.mark.parametrize("how", ["break", "error"])
def test_a_loop_that_is_left_leaves_the_terminal_as_it_was(how, clock, terminal):
    with open(os.dup(terminal.device), "w") as file:
        loader = with_view(Live(file, now=clock.now), DataLoader(Numbers(), 1))

        def train():
            for batch in loader:
                clock.sleep(1)
                terminal.drain()
                if batch == 20 and how == "break":
                    break
                if batch == 20 and how == "error":
                    raise ValueError("of the script's")

        with nullcontext() if how == "break" else pytest.raises(ValueError, match="script"):
            train()
        terminal.drain()
        assert b"-- pipeprof" in terminal.raw
        assert terminal.is_whole
        assert terminal.lines == []


def test_wrap_shows_on_stderr_and_a_copy_in_another_process_does_not():
    loader = pipeprof.wrap([1], live=True)
    assert loader._profiler.live.outputs == (live_view(),)
    assert pipeprof.wrap([2], live=True)._profiler.live.outputs == (live_view(),)
    kind, arguments = loader._profiler.__reduce__()
    assert kind(*arguments).live is None
    assert pipeprof.wrap([1])._profiler.live is None


def test_a_loader_iterated_in_another_thread_is_shown_too(clock):
    file = io.StringIO()
    loader = with_view(Live(file, now=clock.now), DataLoader(Numbers(), 1))

    def train():
        for _ in loader:
            clock.sleep(1.0)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert len(file.getvalue().splitlines()) == 3


def test_live_causes_count_the_loops_waits_for_a_core_as_the_report_does(clock, monkeypatch):
    columns = lying_in_main()
    figures = LiveFigures()
    figures.add(np.column_stack([getattr(columns, name) for name in COLUMNS]))
    assert figures.metrics()["blame/main"] > 0.6
    figures.main_core_wait = 0.3
    assert figures.metrics()["blame/worker-cpu"] > 0.6
    monkeypatch.setattr(HostMonitor, "core_wait_share", lambda monitor: 0.3)
    loader = with_view(Live(io.StringIO(), now=clock.now), DataLoader(Numbers(), 1))
    for _ in loader:
        clock.sleep(1.0)
    assert loader._profiler.live.figures.main_core_wait == 0.3


def test_a_pause_that_is_known_exactly_is_no_part_of_the_turn() -> None:
    clock = FakeClock()
    recorder, figures = Recorder(clock), LiveFigures()
    recorder.on_rows = figures.add
    loader_pass = recorder.begin()
    for number in range(20):
        loader_pass.ask()
        clock.sleep(0.03)
        loader_pass.deliver()
        clock.sleep(0.01)
        if number == 10:
            begin_s = clock.now()
            clock.sleep(5.0)
            loader_pass.add_note(
                NamedInterval(begin_s, clock.now(), PauseKind("checkpoint", "named"))
            )
    loader_pass.leave()
    view = figures.complete(LiveView("train", 1, 20, 40))
    assert (view.starved, view.starved_of_all) == pytest.approx((0.75, 0.75))
    assert view.left_s == pytest.approx(20 * 0.04)
