"""From one simulated run whose machine is known to other numbers of workers: nothing is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from statistics import mean

import numpy as np
import pytest

from pipeprof.analyze.predict.run_hypotheses import RunContext
from pipeprof.analyze.predict.single_run import SingleRun
from pipeprof.analyze.predict.workload import Demand, Link, Machine, Measured, Setting
from tests.analyze.test_predict import batches, run_of

TWO = Machine(cores=2)
WAY = {"send_s": 0.0004, "receive_s": 0.001, "gap_s": 0.0003}


def sent(demands: list[Demand], **more: float) -> list[Demand]:
    return [replace(each, **(WAY | more)) for each in demands]


LOADERS: dict[str, tuple[Callable[[int], list[Demand]], Machine]] = {
    "waits": (lambda seed: sent(batches(seed, latency_s=0.02)), TWO),
    "computes": (lambda seed: sent(batches(seed, cpu_s=0.015)), TWO),
    "computes on sixteen cores": (
        lambda seed: sent(batches(seed, cpu_s=0.03)), Machine(cores=16),
    ),
    "does both": (lambda seed: sent(batches(seed, cpu_s=0.006, latency_s=0.012)), TWO),
    "slows its cores": (
        lambda seed: sent(batches(seed, cpu_s=0.012)), Machine(cores=2, contention_factor=0.85),
    ),
    "holds its interpreter": (
        lambda seed: sent(batches(seed, cpu_s=0.015), receive_blocked_s=0.004), Machine(cores=4),
    ),
    "is dear to send": (lambda seed: sent(batches(seed, cpu_s=0.004), receive_s=0.004), TWO),
    "is received late": (
        lambda seed: sent(batches(seed, latency_s=0.016), late_s=0.003, receive_s=0.0005), TWO,
    ),
}  # fmt: skip


def from_one(
    demands: list[Demand], machine: Machine, workers: int = 2, alone: bool = True
) -> SingleRun:
    known = RunContext(machine.cores, least_transfer_s=0.0005, room_for_more=alone)
    found = SingleRun.of(run_of(demands, Setting(workers), machine), known)
    assert found is not None
    return found


def truth(demands: list[Demand], machine: Machine, workers: int) -> Measured:
    return run_of(demands, Setting(workers), machine)


@pytest.mark.parametrize("name", LOADERS)
def test_more_workers_than_the_two_that_were_measured(name: str) -> None:
    """On other batches of the same kind."""
    make, machine = LOADERS[name]
    prediction = from_one(make(0)[:120], machine).predict(4)
    expected = truth(make(1), machine, 4).batches_per_s
    low, high = prediction.interval
    assert low <= expected <= high
    assert prediction.batches_per_s == pytest.approx(expected, rel=0.13)
    assert high - low < 0.4 * expected, "not wide for show"


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Over samples as small as a short run gives. Its noise is that of real machines, which these
    simulated ones lack, so more than 90 % may be held."""
    make, machine = LOADERS["waits"]
    expected = truth(make(100), machine, 4).batches_per_s
    prediction = [from_one(make(seed)[:45], machine).predict(4).interval for seed in range(12)]
    assert sum(low <= expected <= high for low, high in prediction) >= 10


def test_hand_shakes_that_are_most_of_the_time_tell_nothing_of_other_workers() -> None:
    demands = sent(batches(cpu_s=0.004), receive_s=0.02)
    found = from_one(demands[:120], TWO)
    prediction, measured = found.predict(4), found.predict(2)
    assert prediction.deciding_run == {"num_workers": 4}
    low, high = prediction.interval
    assert low < 0.75 * prediction.batches_per_s < 1.25 * prediction.batches_per_s < high
    assert not measured.deciding_run


def test_without_workers_the_way_from_one_is_a_guess_that_the_interval_holds() -> None:
    demands = sent(batches(latency_s=0.02))
    prediction = from_one(demands[:120], TWO, workers=0).predict(2)
    expected = truth(demands, TWO, 2).batches_per_s
    low, high = prediction.interval
    assert low <= expected <= high


def test_how_cores_slow_each_other_is_open_until_all_of_them_were_busy() -> None:
    demands = sent(batches(cpu_s=0.015))
    idle, busy = (from_one(demands[:120], TWO, workers) for workers in (1, 2))
    prediction = idle.predict(2)
    assert prediction.deciding_run == {"num_workers": 2}
    assert prediction.open_question == "single-run"
    for speed in (1.0, 0.85):
        expected = truth(demands, replace(TWO, contention_factor=speed), 2).batches_per_s
        assert prediction.interval[0] <= expected <= prediction.interval[1]
    assert not busy.predict(3).deciding_run


WAITED = ({"receive_blocked_s": 0.012}, 0.0004)
COMPUTED = ({"receive_s": 0.012}, 0.012)
FOUR = Machine(cores=4)


def clocked(run: Measured, cpu_s: float) -> Measured:
    """With so much CPU time of main in each receipt."""
    column = {"unpickled_cpu_s": np.full(len(run.columns), cpu_s)}
    return replace(run, columns=type(run.columns)({**run.columns._arrays, **column}))


@pytest.mark.parametrize(("way", "cpu_s", "making_s"), [(*WAITED, 0.015), (*COMPUTED, 0.02)])
def test_main_may_have_computed_or_waited_for_an_interpreter(
    way: dict[str, float], cpu_s: float, making_s: float
) -> None:
    """For 12 ms a batch, while its worker was at the next: it has to compute as long for others'
    batches, but not to wait. Its CPU time tells."""
    demands = sent(batches(cpu_s=making_s), **way)
    run = run_of(demands[:120], Setting(1), FOUR)
    known = RunContext(4.0, least_transfer_s=0.0005, room_for_more=True)
    open_, prediction = (
        SingleRun(clocked(run, each), known).predict(3) for each in (np.nan, cpu_s)
    )
    expected = truth(demands, FOUR, 3).batches_per_s
    assert prediction.batches_per_s == pytest.approx(expected, rel=0.1)
    assert open_.batches_per_s != pytest.approx(expected, rel=0.2)
    for each in (open_, prediction):
        assert each.interval[0] <= expected <= each.interval[1]
    assert prediction.interval[1] - prediction.interval[0] < 0.7 * (
        open_.interval[1] - open_.interval[0]
    )


def test_a_worker_that_rests_is_not_waited_for() -> None:
    """Its interpreter is free: receipts that take long without computing have another cause."""
    demands = sent(batches(cpu_s=0.003, latency_s=0.012), **WAITED[0])
    run = run_of(demands[:120], Setting(1), FOUR)
    known = RunContext(4.0, least_transfer_s=0.0005, room_for_more=True)
    open_, prediction = (
        SingleRun(clocked(run, each), known).predict(3) for each in (np.nan, WAITED[1])
    )
    assert prediction == open_


def test_a_link_may_be_full_or_not_unless_it_is_known() -> None:
    """Two workers get 40 batches/s each: of a storage that gives 80 in all, or more."""
    demands = sent(batches(link_bytes=1e6))
    for total in (80e6, inf):
        machine = replace(TWO, link=Link(total, 40e6))
        found = from_one(demands[:120], machine, alone=False)
        prediction, expected = found.predict(4), truth(demands, machine, 4).batches_per_s
        assert found.shares
        assert prediction.deciding_run == {"num_workers": 4}
        assert prediction.interval[0] <= expected <= prediction.interval[1]
    known = from_one(demands[:120], replace(TWO, link=Link(inf, 40e6)), alone=True)
    assert not known.shares


@pytest.mark.parametrize(("share", "feeds"), [(0.25, (5, 6, 7)), (0.5, (3, 4, 5))])
def test_enough_workers_are_the_fewest_that_feed(share: float, feeds: tuple[int, ...]) -> None:
    """Batches of 20 ms for steps of 4 and a receipt of 1, with some to spare."""
    demands = sent(batches(latency_s=0.02), receive_s=0.001)
    found = from_one(demands[:120], TWO)
    enough = found.enough(12, share)
    assert enough in feeds
    starved = truth(demands, TWO, enough).columns
    assert starved.wait_s.sum() / starved.cycle_s.sum() <= share


def test_where_none_feed_the_fewest_that_are_as_fast_as_the_most() -> None:
    demands = sent(batches(cpu_s=0.03))
    assert from_one(demands[:120], TWO).enough(8, 0.05) in (2, 3)


def test_a_training_process_that_computes_leaves_less_to_the_workers() -> None:
    demands = sent(batches(cpu_s=0.01))
    run = run_of(demands[:120], Setting(1), TWO)
    free, busy = (
        SingleRun(
            run, RunContext(2.0, main_cpu_s=cpu_s, least_transfer_s=0.0005, room_for_more=True)
        ).predict(2)
        for cpu_s in (0.0, 0.004)
    )
    assert busy.batches_per_s < 0.9 * free.batches_per_s


PINS = Setting(2, pin_memory=True)


def _some_take_longest(seed: int) -> list[Demand]:
    demands = sent(batches(seed, latency_s=0.018))
    return [
        replace(each, pin_s=0.001 if number % 10 else 0.08) for number, each in enumerate(demands)
    ]


def _workers_compute(seed: int) -> list[Demand]:
    return sent(batches(seed, cpu_s=0.012), pin_s=0.006, receive_blocked_s=0.006)


PINNED: dict[str, Callable[[int], list[Demand]]] = {
    "the thread is the limit": lambda seed: sent(batches(seed, latency_s=0.004), pin_s=0.008),
    "workers are the limit": lambda seed: sent(batches(seed, latency_s=0.012), pin_s=0.003),
    "both matter": lambda seed: sent(batches(seed, latency_s=0.012), pin_s=0.006),
    "some take longest": _some_take_longest,
    "workers compute": _workers_compute,
}


@pytest.mark.parametrize("name", PINNED)
def test_a_thread_that_pins_is_a_stage_of_its_own(name: str) -> None:
    """It also receives, and so waits for the interpreters of workers that compute."""

    def pins_faster(demand: Demand, row: int = 0) -> Demand:
        return replace(demand, pin_s=0.75 * demand.pin_s)

    def made_faster(demand: Demand, row: int = 0) -> Demand:
        made = ("cpu_s", "latency_s", "link_bytes")
        return replace(demand, **{name: 0.75 * getattr(demand, name) for name in made})

    known = RunContext(2.0, least_transfer_s=0.0005, room_for_more=True)
    errors: dict[str, list[float]] = {"pins": [], "makes": [], "more": []}
    for seed in range(3):
        demands = PINNED[name](seed)
        single = SingleRun(run_of(demands[:120], PINS, TWO), known)
        base = run_of(demands, PINS, TWO).batches_per_s
        for stage, faster in (("pins", pins_faster), ("makes", made_faster)):
            cut = run_of([faster(each) for each in demands], PINS, TWO).batches_per_s
            errors[stage].append(float(np.mean(single.gains(faster))) - (cut / base - 1))
        more = run_of(demands, replace(PINS, num_workers=4), TWO).batches_per_s
        errors["more"].append(single.predict(4).batches_per_s / more - 1)
    assert max(abs(mean(each)) for each in errors.values()) < 0.05, errors


def test_too_few_batches_tell_nothing() -> None:
    run = run_of(sent(batches(cpu_s=0.01))[:20], Setting(2), TWO)
    assert SingleRun.of(run, RunContext(2.0)) is None
    unseen = {**run.columns._arrays, "fetch_start_s": np.full(len(run.columns), np.nan)}
    blind = replace(run, columns=type(run.columns)(unseen))
    assert SingleRun.of(blind, RunContext(2.0)) is None
