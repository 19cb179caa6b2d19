"""What `wrap` says of pipelines whose answer is known."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import pipeprof
from pipeprof.measure.clock import SYSTEM_CLOCK, FakeClock
from tests.loaders.forms import profiled

FETCH_S, COLLATE_S, STEP_S = 20.0, 10.0, 5.0


"""By a clock of the tests: real time and CPU time are negligible against these."""


class Sleepy(Dataset):
    """Takes ``fetch_s`` of ``clock`` for a batch of four samples."""

    def __init__(self, clock=None, fetch_s=FETCH_S):
        self.clock, self.fetch_s = clock or FakeClock(), fetch_s

    def __len__(self):
        return 64

    def __getitem__(self, index):
        self.clock.sleep(self.fetch_s / 4)
        return torch.full((3,), float(index))


class Stream(IterableDataset):
    def __init__(self, clock):
        self.clock = clock

    def __iter__(self):
        info = get_worker_info()
        for number in range(info.id if info else 0, 40, info.num_workers if info else 1):
            self.clock.sleep(FETCH_S / 4)
            yield torch.tensor([number])


class SlowCollate:
    def __init__(self, clock):
        self.clock = clock

    def __call__(self, samples):
        self.clock.sleep(COLLATE_S)
        return torch.stack(samples)


def train(loader, clock, step_s=STEP_S):
    for _ in loader:
        clock.sleep(step_s)


FORMS = {
    "inline": {},
    "two workers": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
    "spawn": {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
    "forkserver": {
        "num_workers": 1,
        "multiprocessing_context": "forkserver",
        "persistent_workers": True,
    },
    "any order": {"num_workers": 2, "in_order": False},
}


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=pytest.mark.slow) if form == "spawn" else form for form in FORMS],
)
def test_fetch_collate_and_step_are_the_sleeps_that_were_put_there(form):
    clock = FakeClock()
    inner = DataLoader(Sleepy(clock), 4, collate_fn=SlowCollate(clock), **FORMS[form])
    loader = profiled(inner, clock, whole=True)
    for _ in range(2):
        train(loader, clock)
    profile = loader.profile()
    assert profile.measured_batches + profile.warmup_batches == 32
    assert profile.stages["fetch"].p50_s == pytest.approx(FETCH_S)
    assert profile.stages["collate"].p50_s == pytest.approx(COLLATE_S)
    assert profile.stages["step"].p50_s == pytest.approx(STEP_S)
    assert profile.stages["fetch"].count == profile.measured_batches, "a record was lost"
    assert profile.throughput.samples_per_s == pytest.approx(4 * profile.throughput.batches_per_s)
    assert profile.missing == {
        "h2d": "no batch went through pipeprof.to_device",
        "read": "the data set is a black box: it is part of fetch",
        "decode": "the data set is a black box: it is part of fetch",
        "transform": "the data set is a black box: it is part of fetch",
    }


def test_without_workers_the_wait_is_the_making_of_the_batch():
    clock = FakeClock()
    loader = profiled(DataLoader(Sleepy(clock), 4, collate_fn=SlowCollate(clock)), clock)
    train(loader, clock, step_s=30.0)
    profile = loader.profile()
    assert profile.stages["wait"].p50_s == pytest.approx(FETCH_S + COLLATE_S)
    assert profile.diagnosis.starved_fraction == pytest.approx(0.5, rel=0.01)
    assert profile.diagnosis.verdict == "starved"
    assert profile.diagnosis.bottleneck == "fetch"
    assert profile.blame["fetch"] / profile.stall_s == pytest.approx(2 / 3, rel=0.01)
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)


@pytest.mark.timed
def test_a_loader_faster_than_the_step_feeds():
    loader = pipeprof.wrap(DataLoader(Sleepy(SYSTEM_CLOCK, 0.02), 4, num_workers=2))
    for _ in range(2):
        train(loader, SYSTEM_CLOCK, step_s=0.05)
    # a busy machine wakes this process late: a batch that is ready is still waited for a little
    profile = loader.profile(threshold=0.25)
    assert profile.diagnosis.verdict == "fed"
    assert profile.stages["ready"].p50_s > 0.03


def test_each_worker_has_its_own_stages():
    class OneSlow(Sleepy):
        def __getitem__(self, index):
            self.clock.sleep(20.0 if get_worker_info().id == 1 else 5.0)
            return torch.zeros(1)

    clock = FakeClock()
    loader = profiled(DataLoader(OneSlow(clock), 2, num_workers=2), clock)
    train(loader, clock)
    quick, slow = loader.profile().workers
    assert (quick.index, slow.index) == (0, 1)
    assert slow.stages["fetch"].p50_s == pytest.approx(40.0)
    assert quick.stages["fetch"].p50_s == pytest.approx(10.0)


@pytest.mark.parametrize("workers", [0, 1])
def test_stages_inside_fetch_come_from_user_spans(workers):
    class Staged(Sleepy):
        def __getitem__(self, index):
            with pipeprof.stage("read"):
                self.clock.sleep(4.0)
            with pipeprof.stage("decode"):
                self.clock.sleep(12.0)
            return torch.zeros(1)

    clock = FakeClock()
    loader = profiled(DataLoader(Staged(clock), 1, num_workers=workers), clock)
    train(loader, clock)
    profile = loader.profile()
    assert profile.stages["read"].p50_s == pytest.approx(4.0)
    assert profile.stages["decode"].p50_s == pytest.approx(12.0)
    assert workers or profile.diagnosis.bottleneck == "decode"


def test_epoch_starts_are_kept_out_of_the_steady_state():
    inner = DataLoader(Sleepy(), 4, num_workers=1, prefetch_factor=2)
    loader = pipeprof.wrap(inner, whole=True)
    for _ in range(3):
        assert len(list(loader)) == 16
    assert loader.profile().warmup_batches == 3 * 2


def test_a_loop_that_is_left_keeps_what_was_seen_and_ends_its_workers():
    inner = DataLoader(Sleepy(), 4, num_workers=2)
    loader = pipeprof.wrap(inner)
    iterator = iter(loader)
    workers = iterator._workers
    for _ in range(3):
        next(iterator)
    del iterator
    for worker in workers:
        worker.join(10)
        assert not worker.is_alive()
    profile = loader.profile()
    assert profile.measured_batches + profile.warmup_batches == 3
    assert profile.diagnosis.verdict == "inconclusive"
    # in addition to that of the threads of pytest-xdist
    assert "too-few-batches" in [finding.code for finding in profile.findings]


def test_an_abandoned_persistent_epoch_does_not_confuse_the_next():
    clock = FakeClock()
    collate = SlowCollate(clock)
    inner = DataLoader(Sleepy(clock), 4, num_workers=2, persistent_workers=True, collate_fn=collate)
    loader = profiled(inner, clock, whole=True)
    for number, _ in enumerate(loader):
        if number == 3:
            break
    train(loader, clock)
    profile = loader.profile()
    assert profile.stages["fetch"].count == profile.measured_batches
    assert profile.stages["collate"].p50_s == pytest.approx(COLLATE_S)


def test_persistent_workers_that_ran_before_cannot_be_seen_and_say_so():
    inner = DataLoader(Sleepy(), 4, num_workers=1, persistent_workers=True)
    next(iter(inner))
    loader = pipeprof.wrap(inner)
    list(loader)
    profile = loader.profile()
    assert "running before" in profile.missing["fetch"]
    assert profile.stages["wait"].count > 0
    assert set(profile.blame) == {"unknown"}


def test_any_iterable_gives_the_host_side():
    def batch(_):
        clock.sleep(FETCH_S)
        return [torch.zeros(8, 3), torch.zeros(8)]

    clock = FakeClock()
    loader = profiled(map(batch, range(20)), clock)
    train(loader, clock)
    profile = loader.profile()
    assert profile.stages["wait"].p50_s == pytest.approx(FETCH_S)
    assert profile.throughput.samples_per_s == pytest.approx(8 * profile.throughput.batches_per_s)
    assert "not a torch DataLoader" in profile.missing["fetch"]


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable_data_sets_are_seen_to_their_end(workers):
    clock = FakeClock()
    loader = profiled(DataLoader(Stream(clock), 4, num_workers=workers), clock)
    batches = []
    for batch in loader:
        batches.append(batch)
        clock.sleep(STEP_S)
    values = torch.cat(batches).flatten().tolist()
    assert sorted(values) == list(range(40))
    profile = loader.profile()
    assert profile.stages["fetch"].p50_s == pytest.approx(FETCH_S)
    assert profile.config.kind == "iterable"
