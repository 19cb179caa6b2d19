"""Loads on a storage whose speed is known: it sleeps."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

from pipeprof.errors import StorageError
from pipeprof.probe.budget import Budget
from pipeprof.probe.load import _client_bound, _point, apply_load
from pipeprof.probe.result import LoadSpec
from pipeprof.probe.work import Blocks
from pipeprof.probe.worker_pool import ReaderPool
from pipeprof.storage import ObjectInfo
from tests.support.leaks import threads
from tests.support.wait import comes

ONE, TWO = ObjectInfo("a", "a", 100), ObjectInfo("b", "b", 30)
FREE = 1 << 60


class Sleeps:
    """Each request takes ``request_s``, ``at_once`` of them at a time, first come first served;
    the first ``fails`` are all that succeed."""

    client, cache, notes, shared, gpu_direct = "a sleep", "none", (), False, None

    def __init__(self, request_s: float, at_once: int = 1000, fails: int | None = None) -> None:
        self.objects = [ObjectInfo("a", "a", 1 << 20)]
        self.asked: list[int] = []
        self._request_s, self._fails = request_s, fails
        self._free_s = [0.0] * at_once
        self._lock = threading.Lock()

    def read(self, item: ObjectInfo, offset: int, length: int) -> int:
        self.asked.append(length)
        if self._fails is not None and len(self.asked) > self._fails:
            raise StorageError("gone")
        with self._lock:
            place = self._free_s.index(min(self._free_s))
            done_s = max(time.perf_counter(), self._free_s[place]) + self._request_s
            self._free_s[place] = done_s
        time.sleep(max(0.0, done_s - time.perf_counter()))
        return length

    def close(self) -> None: ...


def test_objects_are_cut_into_blocks_that_are_whole_where_they_can_be():
    blocks = Blocks([ONE, TWO, ONE], 40)
    assert [blocks[number] for number in range(len(blocks))] == [
        (ONE, 0, 40), (ONE, 40, 40), (TWO, 0, 30), (ONE, 0, 40), (ONE, 40, 40),
    ]  # fmt: skip


def test_streams_of_a_sequential_load_begin_apart_and_go_on_in_order():
    blocks, demand = Blocks([ONE], 10), LoadSpec("sequential", 10, 2)
    streams = [blocks.requests(demand, number, 0) for number in range(2)]
    offsets = [[next(stream)[1] for _ in range(7)] for stream in streams]
    assert offsets == [[0, 10, 20, 30, 40, 50, 60], [50, 60, 70, 80, 90, 0, 10]]


def test_random_blocks_are_the_same_for_the_same_seed():
    blocks, demand = Blocks([ONE, TWO], 10), LoadSpec("random", 10, 2)

    def drawn(stream: int, seed: int) -> list[int]:
        draws = blocks.requests(demand, stream, seed)
        return [next(draws)[1] for _ in range(50)]

    assert drawn(0, 1) == drawn(0, 1)
    assert drawn(0, 1) != drawn(1, 1)
    assert drawn(0, 1) != drawn(0, 2)
    assert set(drawn(0, 1)) == set(range(0, 100, 10))


@pytest.mark.timed
@pytest.mark.parametrize("concurrency", [1, 4])
def test_requests_under_way_multiply_the_rate_and_not_the_latency(concurrency):
    target, budget = Sleeps(0.02), Budget(FREE, FREE)
    point = apply_load(
        ReaderPool(target), LoadSpec("random", 1000, concurrency), 0.8, budget, seed=0
    )
    assert point is not None
    assert point.p50_s == pytest.approx(0.02, rel=0.3)
    assert point.requests_per_s == pytest.approx(concurrency / point.mean_s, rel=0.1)
    assert point.bytes == 1000 * point.requests
    assert budget.requests == len(target.asked)
    assert budget.bytes == sum(target.asked)
    assert point.cpu_cores < 0.5


@pytest.mark.timed
def test_what_waits_in_a_queue_adds_latency_and_no_rate():
    point = apply_load(
        ReaderPool(Sleeps(0.01, at_once=2)), LoadSpec("random", 1000, 8), 0.8, Budget(FREE, FREE), 0
    )
    assert point is not None
    assert 100 < point.requests_per_s < 210, "a busy machine adds to each sleep"
    assert point.mean_s == pytest.approx(8 / point.requests_per_s, rel=0.2)


@pytest.mark.parametrize(("most_bytes", "most_requests"), [(50_500, FREE), (FREE, 50)])
def test_no_more_is_read_than_is_allowed(most_bytes, most_requests):
    target, budget = Sleeps(0.001), Budget(most_bytes, most_requests)
    point = apply_load(ReaderPool(target), LoadSpec("random", 1000, 4), 5.0, budget, 0)
    assert len(target.asked) == 50
    assert budget.spent
    assert point is not None
    assert point.requests <= 50


def test_a_rate_is_right_though_requests_end_in_bursts():
    """Ten each tenth of a second, as from a disk under a limit, which is not where the time that
    counts begins or ends."""
    bursts = [(end - 0.1, end, 1000) for end in np.arange(0.1, 2.25, 0.1)] * 10
    point = _point(LoadSpec("random", 1000, 10), np.array(bursts), 0.35, 1.95)
    assert point is not None
    assert (point.requests, point.bytes) == (160, 160_000)
    assert (point.requests_per_s, point.bytes_per_s) == pytest.approx((100, 100_000))


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_the_rate_of_few_large_requests_is_exact_where_they_share_a_link(concurrency):
    """A megabyte a second, in requests of a megabyte; the load ends at 40 s, and what is under way
    then has the link to itself."""
    done = np.array(list(shared_link(concurrency, until_s=40.0)))
    for from_s in (8.0, 9.2, 18.8):
        point = _point(LoadSpec("random", 1, concurrency), done, from_s, 40.0)
        assert point is not None
        assert point.bytes_per_s == pytest.approx(1e6)


def shared_link(concurrency, until_s):
    """When each request began and ended, and its bytes: all get equal shares, in turn."""
    now, began, left = 0.0, [0.0] * concurrency, [1 + n / concurrency for n in range(concurrency)]
    sizes = [1e6 * share for share in left]
    while left:
        place = left.index(min(left))
        passed = left[place]
        now += passed * len(left)
        left = [share - passed for share in left]
        yield began[place], now, sizes[place]
        if now < until_s:
            began[place], left[place], sizes[place] = now, 1.0, 1e6
        else:
            del began[place], left[place], sizes[place]


@pytest.mark.parametrize(
    ("cores", "processes", "spare", "bound"),
    [
        (0.95, 1, 1.0, True),
        (0.95, 2, 1.0, False),
        (1.90, 2, 0.0, True),
        (0.80, 1, 0.5, False),
        (0.50, 1, 0.05, True),
        (0.10, 1, 0.05, False),
        (0.50, 1, None, False),
    ],
)
def test_a_client_whose_cpu_time_is_used_up_is_told(cores, processes, spare, bound, monkeypatch):
    monkeypatch.setattr("pipeprof.probe.load.usable_cores", lambda: 4)
    assert _client_bound(cores, processes, spare) is bound


def test_a_part_of_a_budget_is_put_back():
    budget = Budget(1000, 10)
    part = budget.part(0.5)
    assert [part.take(200) for _ in range(3)] == [True, True, False]
    budget.add(part)
    assert (budget.bytes, budget.requests, budget.spent) == (400, 2, True)
    assert budget.part(1.0).take(600)
    assert not budget.part(1.0).take(601)


def test_too_few_requests_tell_nothing():
    assert (
        apply_load(ReaderPool(Sleeps(0.3)), LoadSpec("random", 1000, 1), 0.3, Budget(FREE, FREE), 0)
        is None
    )


def test_an_error_ends_the_load_and_its_threads():
    before = threads()
    with pytest.raises(StorageError, match="gone"):
        apply_load(
            ReaderPool(Sleeps(0.001, fails=10)),
            LoadSpec("random", 1000, 4),
            5.0,
            Budget(FREE, FREE),
            0,
        )
    assert not threads() - before


def test_ctrl_c_ends_the_load_and_its_threads():
    before = threads()
    with pytest.raises(KeyboardInterrupt):
        interrupted(Sleeps(0.001))
    assert comes(lambda: not threads() - before)


def interrupted(target):
    press_ctrl_c()
    apply_load(ReaderPool(target), LoadSpec("random", 1000, 4), 60.0, Budget(FREE, FREE), 0)


def press_ctrl_c() -> None:
    """Soon; who is at the keyboard reaches the main thread."""
    reach = (threading.get_ident(), signal.SIGINT)
    threading.Timer(0.3, signal.pthread_kill, reach).start()
