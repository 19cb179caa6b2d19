"""A run with a live view is as without one, whatever is shown, and whatever that costs."""

import io
import os

import pytest
import torch
from torch.utils.data import DataLoader, Subset

import pipeprof
from pipeprof.loaders.live.live_pass import LiveLoader
from pipeprof.loaders.live.periodic import MOST_SHARE
from pipeprof.loaders.live.view import LINE_S, Live
from tests.loaders.test_live import Numbers, lines_of, with_view
from tests.loaders.test_sampling import Quick
from tests.support.leaks import descriptors, threads

pytestmark = pytest.mark.usefixtures("no_device")


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
