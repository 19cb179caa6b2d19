"""What a live view shows of a run, when it does so, and that the run is not disturbed."""

import io
import os
import threading
from contextlib import nullcontext

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

import pipeprof
from pipeprof.loaders.instrument.device_monitor import DeviceMonitor
from pipeprof.loaders.live.live_pass import LiveLoader
from pipeprof.loaders.live.metrics import LiveFigures
from pipeprof.loaders.live.periodic import MOST_SHARE
from pipeprof.loaders.live.view import LINE_S, REPAINT_S, Live, live_view
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.pauses import NamedInterval
from pipeprof.measure.recorder import Recorder
from pipeprof.model import PauseKind
from pipeprof.report.live import LiveView
from tests.loaders.test_sampling import Quick
from tests.support.leaks import descriptors, threads


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


@pytest.fixture
def clock():
    return FakeClock(100.0)


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Pretend that no device is in use, whatever other tests did; with one all are recorded."""
    monkeypatch.setattr(DeviceMonitor, "has_work", staticmethod(lambda: False))


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


class Broken(io.StringIO):
    def write(self, text):
        raise OSError("no space left")


def test_what_cannot_be_shown_does_not_disturb_the_training(clock):
    live = Live(Broken(), now=clock.now)
    loader = with_view(live, DataLoader(Numbers(), 1))
    seen = []
    for batch in loader:
        clock.sleep(LINE_S)
        seen.append(int(batch))
    assert seen == list(range(40))
    assert live.due_s == float("inf"), "it is not tried again"


class Nested(Numbers):
    """Iterates, in a worker, a loader that has a live view."""

    def __init__(self, loader, clock):
        self.loader, self.clock = loader, clock

    def __getitem__(self, index):
        for _ in self.loader:
            self.clock.sleep(LINE_S)
        return torch.tensor(index)


def test_a_worker_shows_nothing(clock, tmp_path):
    with open(tmp_path / "shown", "w") as file:
        live = Live(file, now=clock.now)
        inner = with_view(live, DataLoader(Numbers(), 10))
        for _ in with_view(live, DataLoader(Nested(inner, clock), 10, num_workers=1)):
            pass
    assert (tmp_path / "shown").read_text() == ""


def test_other_ranks_than_the_first_show_nothing(clock, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert lines_of(clock, LINE_S, DataLoader(Numbers(), 1)) == []
    monkeypatch.setenv("RANK", "0")
    assert len(lines_of(clock, LINE_S, DataLoader(Numbers(), 1))) == 39


class Tensors(Quick):
    def __getitem__(self, index):
        return torch.tensor(super().__getitem__(index))


@pytest.mark.slow
def test_a_fast_loader_is_watched_in_stretches_as_without(monkeypatch):
    """The live view asks for rows before there are many of them."""
    monkeypatch.setattr("pipeprof.loaders.live.periodic.MOST_SHARE", 1.0)
    file = io.StringIO()
    live = Live(file, line_s=0.05)
    count = 1500
    loader = with_view(live, DataLoader(Subset(Tensors(), range(count)), None, num_workers=2))
    assert [int(batch) for batch in loader] == list(range(count))
    profile = loader.profile()
    assert profile.measured_batches + profile.warmup_batches == count
    assert 16 <= len(profile.batches.index) < count
    assert profile.lost_records == 0
    found = file.getvalue().splitlines()
    assert any(", sampled" in line for line in found)
    counts = [int(line.split(" of 1,500")[0].rpartition(" ")[2].replace(",", "")) for line in found]
    assert counts == sorted(counts)
    assert max(counts) > 1100
    assert any("figures took" in note for note in profile.notes)


def test_shown_or_not_the_figures_are_the_same(monkeypatch):
    monkeypatch.setattr("pipeprof.loaders.live.periodic.MOST_SHARE", 1.0)
    rows = []
    for live in (None, LiveLoader("train", [Live(io.StringIO(), line_s=1e-9)])):
        loader = pipeprof.wrap(DataLoader(Numbers(), 1, num_workers=2), whole=True)
        loader._profiler.live = live
        for _ in range(2):
            assert sorted(int(batch) for batch in loader) == list(range(40))
        log = loader.profile().batches
        rows.append((log.index, log.epoch, log.nth, log.worker, log.samples))
        assert None not in log.fetch_start_s
    assert rows[0] == rows[1]


class Slow(io.StringIO):
    """A file that takes a second for each line."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def write(self, text):
        self.clock.sleep(1.0 if text.startswith("pipeprof") else 0.0)
        return super().write(text)


def test_what_takes_long_to_show_is_shown_rarely(clock):
    file = Slow(clock)
    began_s = clock.now()
    loader = with_view(Live(file, now=clock.now), DataLoader(Numbers(), 1))
    for _ in loader:
        clock.sleep(60.0)
    count = len(file.getvalue().splitlines())
    assert 2 < count <= (clock.now() - began_s) * MOST_SHARE + 2, "but for the first time"


def test_no_thread_and_no_descriptor_is_needed(clock, terminal):
    before = descriptors(), threads()
    with open(os.dup(terminal.device), "w") as file:
        for _ in with_view(Live(file, now=clock.now), DataLoader(Numbers(), 1)):
            clock.sleep(1)
            terminal.drain()
            assert not threads() - before[1]
    left = [path for _, path, _ in descriptors() - before[0]]
    # the counters of the process are opened once, by whoever is first, and kept
    assert all(path.startswith("/proc/") for path in left), left


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
