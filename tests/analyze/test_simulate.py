"""The simulated DataLoader, against torch's own code on a fake clock and against closed forms."""

from dataclasses import replace
from random import Random
from statistics import mean
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.analyze.predict.dataloader_sim import simulate
from pipeprof.analyze.predict.workload import Demand, Link, Machine, Setting
from tests.analyze.torch_rules import run_of_torch


def demands(count: int, seed: int = 0, **most: float) -> list[Demand]:
    """Of ``count`` batches, evenly between nothing and ``most``."""
    random = Random(seed)
    return [
        Demand(**{name: random.uniform(0, limit) for name, limit in most.items()})
        for _ in range(count)
    ]


# -- the rules -----------------------------------------------------------------------------------


@given(
    workers=st.integers(1, 6),
    prefetch=st.integers(1, 4),
    in_order=st.booleans(),
    pins=st.booleans(),
    batches=st.integers(1, 60),
    step_s=st.sampled_from([0.0, 0.002, 0.02]),
    seed=st.integers(0, 10**6),
)
def test_batches_come_when_torchs_own_code_has_them_come(
    workers, prefetch, in_order, pins, batches, step_s, seed
):
    asked = demands(
        batches, seed, latency_s=0.02, cpu_s=0.02, send_s=0.002, receive_s=0.004, step_s=step_s,
        step_cpu_s=0.001, pin_s=0.006, take_s=0.001,
    )  # fmt: skip
    setting = Setting(workers, prefetch, in_order, pins)
    expected = run_of_torch(asked, setting)
    run = simulate(asked, setting)
    assert run.order == tuple(number for number, _ in expected)
    moments = [moment for _, each in expected for moment in each]
    found = [x for row in zip(run.asked_s, run.delivered_s, run.done_s, strict=True) for x in row]
    assert found == pytest.approx(moments)


def test_a_slow_batch_holds_up_those_behind_it_only_in_order():
    asked = [Demand(latency_s=1.0 if number == 0 else 0.01) for number in range(8)]
    assert simulate(asked, Setting(2, 2)).order == tuple(range(8))
    assert simulate(asked, Setting(2, 2, in_order=False)).order == (1, 3, 4, 5, 6, 7, 0, 2)


# -- closed forms --------------------------------------------------------------------------------


def test_without_workers_everything_is_one_after_another():
    asked = demands(50, latency_s=0.01, cpu_s=0.02, send_s=9.0, receive_s=9.0, step_s=0.03)
    run = simulate(asked, Setting(0))
    made_s = sum(each.latency_s + each.cpu_s for each in asked)
    step_s = sum(each.step_s for each in asked)
    assert run.wall_s == pytest.approx(made_s + step_s)
    assert run.starved_fraction == pytest.approx(made_s / (made_s + step_s))


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_latency_shrinks_with_workers_and_cpu_only_with_cores(workers):
    waits = simulate([Demand(latency_s=0.04)] * 1600, Setting(workers)).after(100)
    assert waits.batches_per_s == pytest.approx(workers / 0.04, rel=0.01)
    burns = simulate([Demand(cpu_s=0.04)] * 1600, Setting(workers), Machine(cores=2)).after(100)
    assert burns.batches_per_s == pytest.approx(min(workers, 2) / 0.04, rel=0.01)


@pytest.mark.parametrize(("workers", "expected"), [(1, 30e6), (2, 60e6), (4, 100e6), (8, 100e6)])
def test_a_link_gives_each_stream_its_rate_and_all_of_them_no_more_than_the_whole(
    workers, expected
):
    machine = Machine(link=Link(total=100e6, each=30e6))
    run = simulate([Demand(link_bytes=1e6)] * 1600, Setting(workers), machine).after(100)
    assert run.batches_per_s * 1e6 == pytest.approx(expected, rel=0.01)


def test_a_burst_passes_faster_until_it_is_used_up():
    link = Link(total=10e6, burst=4e6, peak=50e6)
    run = simulate([Demand(link_bytes=1e6)] * 30, Setting(0), Machine(link=link))
    # 4 MB of tokens go at 50 MB/s, while 10 MB/s come back: 5 MB within 0.1 s
    assert run.delivered_s[4] == pytest.approx(0.1)
    assert run.delivered_s[-1] == pytest.approx(0.1 + 25 / 10)


def test_a_rest_brings_the_burst_back():
    link = Link(total=10e6, burst=4e6, peak=50e6)
    asked = [Demand(link_bytes=1e6, step_s=0.2)] * 10
    run = simulate(asked, Setting(0), Machine(link=link))
    assert run.delivered_s - run.asked_s == pytest.approx([1 / 50] * 10)


def test_the_accelerator_is_never_starved_by_a_loader_that_is_fast_enough():
    run = simulate([Demand(latency_s=0.03, step_s=0.02)] * 100, Setting(2)).after(10)
    assert run.starved_fraction == pytest.approx(0.0)
    slow = simulate([Demand(latency_s=0.03, step_s=0.01)] * 200, Setting(2)).after(10)
    assert slow.batches_per_s == pytest.approx(2 / 0.03, rel=0.02)
    assert slow.starved_fraction == pytest.approx(1 / 3, rel=0.03)


def test_batches_that_were_made_ahead_make_no_run_faster_in_the_long_run():
    """At its end a run hands out what lies ready: its last batches seem to take less time."""
    setting, machine, chance = Setting(8, 8), Machine(cores=2), Random(0)
    steady_s, to_the_end_s = [], []
    for _ in range(20):
        uneven = [Demand(cpu_s=chance.expovariate(100)) for _ in range(setting.unsteady + 60)]
        run = simulate(uneven, setting, machine)
        steady, to_the_end = run.steady(setting), run.after(setting.unsteady)
        assert len(steady.order) == len(to_the_end.order) == 60
        steady_s.append(steady.wall_s)
        to_the_end_s.append(to_the_end.wall_s)
    assert 60 / mean(steady_s) == pytest.approx(2 / 0.01, rel=0.05)
    assert 60 / mean(to_the_end_s) > 1.5 * 2 / 0.01


def test_of_a_run_too_short_to_be_steady_something_is_left():
    setting = Setting(2, 2)
    for count in (1, 8, 9, 10, 12, 20):
        assert simulate([Demand(0.01)] * count, setting).steady(setting).order


def test_main_competes_with_its_workers_for_the_cores():
    machine = Machine(cores=1)
    run = simulate([Demand(cpu_s=0.02, receive_s=0.01)] * 1600, Setting(4), machine).after(20)
    assert run.batches_per_s == pytest.approx(1 / 0.03, rel=0.01)


def test_serialising_goes_on_beside_the_next_batch():
    asked = [Demand(latency_s=0.02, send_s=0.02)] * 200
    assert simulate(asked, Setting(1)).after(20).batches_per_s == pytest.approx(50, rel=0.01)


def test_cores_that_are_all_busy_slow_each_other_down():
    machine = Machine(cores=2, contention_factor=0.8)
    one = simulate([Demand(cpu_s=0.04)] * 400, Setting(1), machine).after(100)
    two = simulate([Demand(cpu_s=0.04)] * 400, Setting(2), machine).after(100)
    assert one.batches_per_s == pytest.approx(1 / 0.04, rel=0.01)
    assert two.batches_per_s == pytest.approx(2 * 0.8 / 0.04, rel=0.01)


def test_a_worker_that_makes_another_batch_holds_up_the_last():
    held = [Demand(latency_s=0.01, send_blocked_s=0.004, receive_blocked_s=0.005)] * 400
    busy = simulate(held, Setting(1))
    assert (busy.delivered_s - busy.made_s)[5:-5] == pytest.approx(0.009)
    idle = simulate([replace(each, step_s=0.1) for each in held], Setting(1, 1))
    # main has taken the batch, and asked for the next, long after its worker had made it
    assert idle.delivered_s[5] - idle.asked_s[5] == pytest.approx(0)


def test_who_is_held_up_by_a_worker_goes_on_when_that_has_made_its_batch():
    held = Demand(latency_s=0.01, gap_s=0.001, send_s=0.003, receive_s=0.002, receive_blocked_s=1.0)
    run = simulate([held] * 400, Setting(1))
    assert run.batches_per_s == pytest.approx(1 / 0.012, rel=0.02), "made, and then unpickled"
    wait_s = (run.delivered_s - run.made_s)[5:-5]
    assert wait_s == pytest.approx(0.014), "until the next one is made, and then unpickled"


def test_a_worker_takes_a_moment_between_two_batches():
    run = simulate([Demand(latency_s=0.01, gap_s=0.002)] * 400, Setting(1)).after(20)
    assert run.batches_per_s == pytest.approx(1 / 0.012, rel=0.01)


def test_main_receives_faster_what_comes_close_upon_another():
    asked = [Demand(latency_s=0.001, receive_s=0.004, receive_warm=0.5)] * 400
    assert simulate(asked, Setting(4)).after(20).batches_per_s == pytest.approx(1 / 0.002, rel=0.01)
    slow = [replace(each, step_s=0.1) for each in asked]
    assert simulate(slow, Setting(4)).after(20).starved_fraction == pytest.approx(4 / 104, rel=0.01)


def test_a_run_says_who_made_each_batch_and_when():
    run = simulate([Demand(latency_s=0.1)] * 6, Setting(2, 1))
    assert run.worker.tolist() == [0, 1] * 3
    assert run.begun_s == pytest.approx([0, 0, 0.1, 0.1, 0.2, 0.2])
    assert run.made_s - run.begun_s == pytest.approx([0.1] * 6)
    assert simulate([Demand(cpu_s=0.1)], Setting(0)).worker.tolist() == [-1]


def test_nothing_is_a_run_of_nothing():
    run = simulate([], Setting(2))
    assert (run.order, len(run.asked_s)) == ((), 0)


@pytest.mark.timed
def test_a_thousand_batches_take_no_time():
    """The bar is 0.2 s; some machines are slow, and busy."""
    asked = demands(1000, latency_s=0.005, link_bytes=1e5, cpu_s=0.01, send_s=2e-4, receive_s=3e-4)
    start = perf_counter()
    simulate(asked, Setting(8), Machine(4, link=Link(5e7, 2e7, 1e6, 1e8)))
    assert perf_counter() - start < 1.0


# -- one interpreter, few cores ------------------------------------------------------------------


@pytest.mark.parametrize(("cpu_s", "latency_s", "each_s"), [(0.01, 0.0, 0.012), (0.0, 0.01, 0.01)])
def test_a_worker_sends_a_batch_in_the_time_of_its_next_one_if_it_computes(
    cpu_s, latency_s, each_s
):
    asked = [Demand(latency_s=latency_s, cpu_s=cpu_s, send_s=0.002)] * 200
    setting = Setting(1, 2)
    run = simulate(asked, setting, Machine(cores=8)).steady(setting)
    assert 1 / run.batches_per_s == pytest.approx(each_s, rel=0.01)


@pytest.mark.parametrize(("cores", "at_s"), [(1, 0.021), (2, 0.010)])
def test_main_waits_to_be_handed_a_batch_while_all_cores_are_busy(cores, at_s):
    """The second worker still computes when the first has made its batch."""
    asked = [Demand(cpu_s=0.01, receive_blocked_s=0.001), Demand(cpu_s=0.03)]
    run = simulate(asked, Setting(2, 1), Machine(cores=cores))
    assert run.delivered_s[0] == pytest.approx(at_s)


def test_workers_that_wait_and_compute_by_turns_do_not_keep_step_with_main():
    """Four are at it when main comes for a batch, and half of their time is computing."""
    asked = [Demand(latency_s=0.008, cpu_s=0.008, receive_blocked_s=0.002, step_s=0.007)] * 400
    setting = Setting(4, 1)
    run = simulate(asked, setting, Machine(cores=2)).steady(setting)
    assert (run.delivered_s - run.asked_s).mean() > 0.0002
