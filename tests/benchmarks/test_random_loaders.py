"""Loaders drawn at random: the same seed gives the same, and a cut cuts what it says."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import torch

from benchmarks import random_loader_runs, random_loader_work
from benchmarks.random_loader_runs import run, steady_part
from benchmarks.random_loader_surroundings import Surroundings, surroundings
from benchmarks.random_loader_work import Work, loader_of, pinning, use_credit
from benchmarks.random_loaders import COUNTED, LAB, Cost, Jitter, LoaderSpec, draw

SEEDS = range(400)
NOTHING_NEEDED = Surroundings()


def one(kind, place="decode", pieces=4, piece_s=2e-3, **settings) -> LoaderSpec:
    options = {"seed": 1, "annotated": True, "num_workers": 1, **settings}
    return LoaderSpec(costs=(Cost(kind, place, pieces, piece_s),), **options)


def cheaper(spec: LoaderSpec) -> LoaderSpec:
    return spec.cut(spec.costs, 0.75)


def test_the_same_seed_gives_the_same_loader_and_another_another():
    drawn = [draw(seed) for seed in SEEDS]
    assert drawn == [draw(seed) for seed in SEEDS]
    assert len({str(spec) for spec in drawn}) == len(SEEDS)


def test_a_loader_is_pickled_and_printed_in_a_line():
    for spec in map(draw, SEEDS):
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert "\n" not in str(spec)


def test_everything_occurs():
    drawn = [draw(seed, LAB) for seed in SEEDS]
    costs = [cost for spec in drawn for cost in spec.costs]
    assert {cost.kind for cost in costs} == {
        "sleep", "python", "hash", "inflate", "file", "request", "memory", "tensors", *LAB,
    }  # fmt: skip
    places = {"read", "decode", "transform", "collate", "sampler", "pin", "transfer"}
    assert {cost.place for cost in costs} == places
    assert {len(spec.costs) for spec in drawn} == {1, 2, 3, 4}
    assert {spec.num_workers for spec in drawn} == {0, 1, 2, 3, 4, 6}
    assert {spec.prefetch_factor for spec in drawn} == {1, 2, 3, 4}
    for flag in ("in_order", "iterable", "annotated"):
        assert {getattr(spec, flag) for spec in drawn} == {True, False}
    assert {spec.start_method for spec in drawn} == {"fork", "spawn"}
    steps = [spec.step_s for spec in drawn]
    assert (min(steps), max(steps) <= 0.030, max(steps) > 0.025) == (0.0, True, True)
    assert any(cost.jitter.tail for cost in costs)
    assert any(cost.jitter.one_in for cost in costs)


def test_without_root_nothing_needs_it():
    assert not {cost.kind for seed in SEEDS for cost in draw(seed).costs} & set(LAB)


def test_costs_are_where_they_can_be():
    for spec in map(draw, SEEDS):
        assert 0.0006 < sum(cost.batch_s for cost in spec.costs) < 0.065
        assert min(cost.batch_s for cost in spec.costs) > 0.0006
        for cost in spec.costs:
            assert not (cost.place == "sampler" and spec.iterable)
            assert not (cost.place == "transfer" and not spec.num_workers)


@pytest.mark.parametrize(
    "jitter",
    [Jitter(0.6), Jitter(0.1, tail=1.6), Jitter(0.1, one_in=8, slow=8.0)],
    ids=str,
)
def test_jitter_leaves_the_mean_as_it_is(jitter):
    chance = Random(0)
    factors = [jitter.factor(chance) for _ in range(50_000)]
    assert sum(factors) / len(factors) == pytest.approx(1, rel=0.05)


def test_a_cut_scales_those_costs_and_leaves_the_rest():
    for spec in map(draw, SEEDS):
        for cost in spec.costs:
            cut = spec.cut([cost], 0.75)
            changed = [
                (before, after)
                for before, after in zip(spec.costs, cut.costs, strict=True)
                if before != after
            ]
            assert [before for before, _ in changed] == [cost]
            assert changed[0][1].batch_s == pytest.approx(0.75 * cost.batch_s)
            assert (changed[0][1].pieces != cost.pieces) == (cost.kind in COUNTED)
            assert cut.cut(cut.costs, 1.0) == cut


def test_a_count_is_not_cut_to_a_fraction():
    with pytest.raises(ValueError, match=r"3 × 0\.75"):
        Cost("tensors", "transfer", 3, 0.001).times(0.75)


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        (one("python"), ("decode", "worker-cpu")),
        (one("python", num_workers=0), ("decode", "worker-cpu")),
        (one("python", annotated=False), ("fetch", "worker-cpu")),
        (one("sleep", "transform", annotated=False), ("fetch",)),
        (one("file", "read", annotated=False), ("read", "worker-cpu")),
        (one("request", "read", annotated=False), ("fetch",)),
        (one("hash", "collate", annotated=False), ("collate", "worker-cpu")),
        (one("python", "sampler"), ("sampler",)),
        (one("tensors", "transfer"), ("transfer",)),
    ],
    ids=str,
)
def test_what_a_cost_is_blamed_as(spec, causes):
    assert spec.causes_of(spec.costs[0]) == causes
    assert spec.causes == causes
    assert spec.costs_of(causes[-1]) == spec.costs


def test_a_sleep_is_cut_by_a_quarter(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for spec in (one("sleep"), cheaper(one("sleep"))):
        Work(spec, NOTHING_NEEDED).do("decode", batch=3)
    assert slept == pytest.approx([0.002] * 4 + [0.0015] * 4)


def cpu_s(*specs: LoaderSpec) -> list[float]:
    """The least that each takes, where they alternate."""
    works = [Work(spec, NOTHING_NEEDED) for spec in specs]
    took_s: list[list[float]] = [[] for _ in specs]
    for _ in range(15):
        for work, each_s in zip(works, took_s, strict=True):
            start_s = time.thread_time()
            work.do("decode", batch=0)
            each_s.append(time.thread_time() - start_s)
    return [min(each_s) for each_s in took_s]


@pytest.mark.timed
@pytest.mark.parametrize("kind", ["python", "hash", "inflate"])
def test_computing_is_cut_by_a_quarter(kind):
    spec = one(kind, piece_s=5e-3)
    after_s, before_s = cpu_s(cheaper(spec), spec)
    assert after_s / before_s == pytest.approx(0.75, abs=0.12)


def test_reading_is_cut_by_a_quarter(tmp_path: Path):
    def read_bytes(spec):
        before = _read_so_far()
        Work(spec, around).do("read", batch=0)
        return _read_so_far() - before

    spec = one("file", "read")
    with surroundings([spec]) as around:
        ratio = read_bytes(cheaper(spec)) / read_bytes(spec)
    assert ratio == pytest.approx(0.75, rel=0.01)


def _read_so_far() -> int:
    """Bytes, of this process."""
    words = Path("/proc/self/io").read_text().split()
    return int(words[words.index("rchar:") + 1])


def test_requests_are_cut_by_a_quarter(monkeypatch):
    sent: list[bytes] = []

    class Connection:
        def sendall(self, data: bytes) -> None:
            sent.append(data)

        def recv(self, size: int, *_: int) -> bytes:
            return bytes(size)

    monkeypatch.setattr(Work, "_connection", lambda *_: Connection())
    for spec, count in ((one("request", pieces=12), 12), (cheaper(one("request", pieces=12)), 9)):
        sent.clear()
        Work(spec, NOTHING_NEEDED).do("decode", batch=0)
        assert len(sent) == count
        assert len(set(sent)) == 1, "each as long as before"


def test_a_request_waits_for_the_server():
    spec = one("request", "read", pieces=4, piece_s=0.01)
    with surroundings([spec]) as around:
        start_s = time.perf_counter()
        Work(spec, around).do("read", batch=0)
        assert time.perf_counter() - start_s >= 0.04


def test_tensors_are_cut_by_a_quarter():
    spec = one("tensors", "transfer", pieces=8, num_workers=0)
    for each, count in ((spec, 8), (cheaper(spec), 6)):
        batch = next(iter(loader_of(each, NOTHING_NEEDED)))
        assert len(batch) == count


def test_pieces_are_spread_over_the_samples_of_a_batch(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    work = Work(one("sleep", pieces=3, batch_size=8), NOTHING_NEEDED)
    for sample in range(8):
        work.do("decode", 0, sample)
    assert len(slept) == 3


@pytest.fixture
def reluctant() -> Iterator[None]:
    """A thread gives the interpreter up when it waits or is in C, and never else."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize(
    ("kind", "holds"), [("python", True), ("hash", False), ("inflate", False), ("sleep", False)]
)
@pytest.mark.usefixtures("reluctant")
def test_who_holds_the_interpreter(kind, holds):
    go, ran = threading.Lock(), threading.Event()
    go.acquire()
    other = threading.Thread(target=lambda: (go.acquire(), ran.set()))
    other.start()
    work = Work(one(kind, pieces=1, piece_s=0.2), NOTHING_NEEDED)
    go.release()
    work.do("decode", 0)
    meanwhile = ran.is_set()
    other.join()
    assert meanwhile == (not holds)


@pytest.mark.parametrize("iterable", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_numbered_whoever_makes_them(iterable, workers):
    costs = (Cost("hash", "decode", 2, 1e-4), Cost("python", "sampler", 1, 1e-4))
    spec = LoaderSpec(1, costs[: 2 - iterable], True, workers, iterable=iterable, batch_size=4)
    batches = [batch for batch, *_ in islice(loader_of(spec, NOTHING_NEEDED), 6)]
    assert [tuple(batch.shape) for batch in batches] == [(4, 16)] * 6
    assert [batch[:, 0].tolist() for batch in batches] == [[float(each)] * 4 for each in range(6)]


def test_a_spawned_worker_gets_its_costs():
    spec = one("hash", start_method="spawn", piece_s=1e-4)
    assert len(next(iter(loader_of(spec, NOTHING_NEEDED)))) == 1


def test_pinning_is_pretended_while_the_loader_runs(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("benchmarks.random_loader_work.time.sleep", slept.append)
    spec = one("sleep", "pin", pieces=1, num_workers=0)
    with pinning(spec, NOTHING_NEEDED):
        assert torch.accelerator.is_available()
        list(islice(loader_of(spec, NOTHING_NEEDED), 3))
    assert len(slept) == 3
    assert not torch.accelerator.is_available()


def test_only_a_loader_that_reads_from_the_disk_uses_its_credit(monkeypatch):
    reads = []
    monkeypatch.setattr(random_loader_work, "_read_uncached", lambda *_: reads.append(1))
    monkeypatch.setattr(random_loader_work, "_CREDIT_S", 0.01)
    use_credit(one("file", "read"), NOTHING_NEEDED)
    assert not reads
    use_credit(one("disk", "read"), NOTHING_NEEDED)
    assert reads


@pytest.mark.timed
@pytest.mark.parametrize(("kind", "warmup_s"), [("sleep", 0.0), ("disk", 0.1)])
def test_a_throttled_disk_is_warmed_up_before_a_run(kind, warmup_s, monkeypatch):
    monkeypatch.setattr(random_loader_work, "_read_uncached", lambda *_: time.sleep(2e-3))
    monkeypatch.setattr(random_loader_runs, "_LAB_WARMUP_S", warmup_s)
    recording = run(one(kind, "read", num_workers=0), NOTHING_NEEDED, 0, batches=5)
    measured = steady_part(recording)
    batch_s = 4 * 2e-3
    assert len(measured.columns) >= 5
    assert recording.warmup_batches <= 1 + warmup_s / batch_s
    assert len(recording.batches.index) * batch_s >= warmup_s
