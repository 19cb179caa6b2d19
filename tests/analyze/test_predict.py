"""Calibrated on simulated runs whose machine is known, and asked for others: nothing is timed."""

from dataclasses import fields, replace
from math import inf
from random import Random

import numpy as np
import pytest

from pipeprof.analyze.predict.calibrate import calibrate
from pipeprof.analyze.predict.dataloader_sim import simulate
from pipeprof.analyze.predict.predict import predict
from pipeprof.analyze.predict.workload import Demand, Link, Machine, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.model import BatchLog

STEP_S = np.array([0.004])
SETTINGS = [Setting(w, p) for w in (0, 1, 2, 4, 8) for p in (1, 2, 4)]
FEW = (Setting(0, 1), Setting(1, 2), Setting(4, 4))
"""Those that `make test` predicts; `make test-all` does the others."""


def batches(seed=0, count=240, **means):
    """With jitter, so that they do not lock in phase."""
    random = Random(seed)
    return [
        Demand(**{name: mean * random.lognormvariate(0, 0.3) for name, mean in means.items()})
        for _ in range(count)
    ]


def run_of(demands, setting, machine, reads_unknown=False):
    """As the instrument would see it: the CPU time of each fifth batch only."""
    asked = [Demand(**{**vars(each), "step_s": STEP_S[0]}) for each in demands]
    run = simulate(asked, setting, machine)
    kept = slice(4, len(demands) - setting.in_flight)  # a loader that goes on
    contention_factor = machine.contention_factor if setting.num_workers > 1 else 1.0
    cpu_s = np.array([asked[number].cpu_s / contention_factor for number in run.order])
    cpu_s[np.arange(len(cpu_s)) % 5 > 0] = np.nan
    sent_s = run.made_s + np.array([asked[number].send_s for number in run.order])
    arrived_s, unknown = run.delivered_s, np.full(len(run.order), np.nan)
    if setting.pin_memory:
        arrived_s = run.pinned_s - np.array([asked[number].pin_s for number in run.order])
    received_s = arrived_s - np.array([asked[number].receive_s for number in run.order])
    columns = {field.name: unknown for field in fields(BatchLog)} | {
        "index": np.arange(len(run.order)), "asked_s": run.asked_s,
        "delivered_s": run.delivered_s, "done_s": run.done_s, "fetch_start_s": run.begun_s,
        "fetch_end_s": run.made_s, "sent_s": sent_s, "received_s": received_s,
        "arrived_s": arrived_s, "pinned_s": run.pinned_s, "worker": run.worker, "cpu_s": cpu_s,
        "requests": 0 * sent_s,
        "bytes": np.array([asked[number].link_bytes for number in run.order]),
        "logical_bytes": unknown if reads_unknown else 0 * sent_s,
    }  # fmt: skip
    return Measured(setting, Columns({name: np.array(each[kept], float)
                                      for name, each in columns.items()}))  # fmt: skip


def calibrated(demands, machine, **options):
    settings = (Setting(0), Setting(1, 1), Setting(2, 2))
    runs = [run_of(demands, setting, machine, **options) for setting in settings]
    return calibrate(runs, machine.cores)


def truth(demands, setting, machine):
    asked = [Demand(**{**vars(each), "step_s": STEP_S[0]}) for each in demands]
    return simulate(asked, setting, machine).steady(setting)


@pytest.fixture(scope="module")
def computing():
    demands = batches(count=400, cpu_s=0.02, send_s=0.0003, receive_s=0.0004)
    machine = Machine(cores=2, contention_factor=0.9)
    return demands, machine, calibrated(demands, machine)


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(
            each,
            id=f"{each.num_workers}x{each.prefetch_factor}",
            marks=[] if each in FEW else pytest.mark.slow,
        )
        for each in SETTINGS
    ],
)
def test_batches_that_compute_are_bound_by_the_cores(computing, setting):
    demands, machine, calibration = computing
    expected = truth(demands, setting, machine)
    found = predict(calibration, setting, STEP_S)
    assert found.batches_per_s == pytest.approx(expected.batches_per_s, rel=0.06)
    assert found.starved_fraction == pytest.approx(expected.starved_fraction, abs=0.05)


def test_a_storage_that_two_workers_fill_is_seen_to_be_full():
    demands = batches(link_bytes=1e6, cpu_s=0.001)
    machine = Machine(cores=2, link=Link(total=80e6, each=50e6))
    found = calibrated(demands, machine)
    assert found.concurrent_waits == pytest.approx(1.6, rel=0.08)
    for workers in (4, 8):
        prediction = predict(found, Setting(workers), STEP_S)
        assert prediction.batches_per_s == pytest.approx(80, rel=0.08)
        assert not prediction.deciding_run


@pytest.mark.parametrize("setting", [Setting(1, 2), Setting(2, 2), Setting(4, 2), Setting(8, 1)])
def test_a_limited_rate_holds_one_worker_up_that_seems_to_have_it_to_itself(setting):
    """In a worker's pauses the link gets tokens; given its batches one by one it is not slowed."""
    demands = [replace(each, gap_s=0.003) for each in batches(link_bytes=1e6)]
    machine = Machine(link=Link(total=80e6, each=100e6, burst=2e6, peak=200e6))
    found = calibrated(demands, machine)
    assert found.concurrent_waits == pytest.approx(0.8, rel=0.08)
    assert found.disagreement < 0.03
    expected = truth(demands, setting, machine).batches_per_s
    assert predict(found, setting, STEP_S).batches_per_s == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("regains", [True, False])
def test_further_runs_show_whether_a_storage_regains_what_it_could_have_read_while_idle(regains):
    """Two workers are equally fast with a throttled disk and with a link that is nearly full."""
    throttled = Link(total=154e6, each=800e6, burst=3e6, peak=800e6)
    machine = Machine(link=throttled if regains else Link(total=175e6, each=150e6))
    own = {"latency_s": 0.0048} if regains else {"cpu_s": 0.004}
    demands = [replace(each, **own) for each in batches(link_bytes=1e6)]
    one, two, many = (run_of(demands, each, machine)
                      for each in (Setting(1, 2), Setting(2, 2), Setting(6, 4)))  # fmt: skip
    found = calibrate([one, two], inf, [many])
    assert found.regains is regains
    for setting in (Setting(3, 1), Setting(4, 4)):
        expected = truth(demands, setting, machine).batches_per_s
        assert predict(found, setting, STEP_S).batches_per_s == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("saves", [True, False])
def test_one_workers_waits_show_whether_its_storage_saves_up(saves):
    """Without prefetching, what it saves up during the training step hides its waits."""
    saving = Link(total=150e6, each=800e6, burst=3e6, peak=800e6)
    machine = Machine(link=saving if saves else Link(total=150e6, each=150e6))
    chance = Random(0)
    demands = [Demand(link_bytes=1e6, gap_s=chance.uniform(0.0005, 0.006)) for _ in range(240)]
    found = calibrate([_reading(run_of(demands, Setting(workers, 2), machine))
                       for workers in (1, 2)], inf)  # fmt: skip
    assert found.saves_up is saves
    for setting in (Setting(0), Setting(1, 1)):
        expected = truth(demands, setting, machine).batches_per_s
        assert predict(found, setting, STEP_S).batches_per_s == pytest.approx(expected, rel=0.06)


def _reading(run):
    """As of a data set whose reads are clocked, and that does nothing else."""
    nothing = np.zeros(len(run.columns))
    known = {"read_s": run.columns.made_s, "read_cpu_s": nothing, "cpu_s": nothing}
    return replace(run, columns=run.columns.replaced(**known))


def test_what_two_workers_share_is_seen_even_where_it_is_not_seen_to_be_read():
    """From a socket, by loaders that hand over little."""
    demands = batches(link_bytes=1e6)
    found = calibrated(demands, Machine(link=Link(total=60e6, each=50e6)))
    blind = [_unread(run_of(demands, each, Machine(link=Link(total=60e6, each=50e6))))
             for each in (Setting(1, 1), Setting(2, 2))]  # fmt: skip
    assert calibrate(blind, 2).concurrent_waits == pytest.approx(found.concurrent_waits)
    roomy = Machine(link=Link(total=95e6, each=50e6))
    blind = [_unread(run_of(demands, each, roomy)) for each in (Setting(1, 1), Setting(2, 2))]
    assert calibrate(blind, 2).concurrent_waits == inf, "or two workers wait for something else"


def _unread(run):
    unseen = np.zeros(len(run.columns))
    names = [field.name for field in fields(BatchLog)]
    columns = {name: getattr(run.columns, name) for name in names} | {"bytes": unseen}
    return replace(run, columns=Columns(columns))


def test_where_two_workers_cannot_tell_the_run_that_could_is_named():
    """Latency that each has to itself, or a storage that has room for just two: they look alike."""
    demands = batches(latency_s=0.02)
    found = calibrated(demands, Machine(cores=2), reads_unknown=True)
    assert found.concurrent_waits == inf
    prediction = predict(found, Setting(4), STEP_S)
    assert prediction.deciding_run == {"num_workers": 4}
    assert prediction.open_question == "shared-wait"
    low, high = prediction.interval
    expected = truth(demands, Setting(4), Machine(cores=2)).batches_per_s
    assert low < 0.6 * expected < expected < 1.05 * high
    assert not predict(found, Setting(2, 4), STEP_S).deciding_run


@pytest.mark.parametrize(
    ("setting", "deciding_run"),
    [
        (Setting(1, 1), {}),
        (Setting(1, 2), {"num_workers": 1, "prefetch_factor": 2}),
        (Setting(2, 4), {}),
        (Setting(4, 2), {"num_workers": 4}),
    ],
)
def test_hand_shakes_that_are_most_of_the_time_are_predicted_for_settings_that_were_run(
    setting, deciding_run
):
    """Of the three settings, and of two workers that prefetch more."""
    demands = batches(cpu_s=0.004, send_s=0.001, receive_s=0.015)
    machine = Machine(cores=2)
    prediction = predict(calibrated(demands, machine), setting, STEP_S)
    assert prediction.deciding_run == deciding_run
    assert (prediction.open_question == "hand-over") == bool(deciding_run)
    low, high = prediction.interval
    assert (high - low > 0.7 * prediction.batches_per_s) == bool(deciding_run)
    slow = predict(calibrated(demands, machine), setting, np.array([0.04]))
    assert not slow.deciding_run, "where the step is most of the time, it hardly matters"


@pytest.mark.slow
def test_where_runs_of_one_setting_differ_too_much_longer_ones_are_asked_for(computing):
    demands, machine, _ = computing
    settings = (Setting(1, 1), Setting(2, 2))

    def predicted(times):
        slower = [replace(each, cpu_s=times * each.cpu_s) for each in demands]
        runs = [run_of(batch, each, machine) for each in settings for batch in (demands, slower)]
        return predict(calibrate(runs, machine.cores), Setting(4), STEP_S)

    assert not predicted(1.2).deciding_run
    assert predicted(1.6).deciding_run == {"noise": pytest.approx(0.32, abs=0.005)}


@pytest.mark.parametrize("workers", [4, 8])
def test_what_waits_and_reads_nothing_has_its_wait_to_itself(workers):
    demands = batches(latency_s=0.02)
    prediction = predict(calibrated(demands, Machine(cores=2)), Setting(workers), STEP_S)
    expected = truth(demands, Setting(workers), Machine(cores=2)).batches_per_s
    assert prediction.batches_per_s == pytest.approx(expected, rel=0.05)
    assert not prediction.deciding_run


HELD = {"send_s": 0.0003, "receive_s": 0.001, "gap_s": 0.001}
"""Of a batch that takes 15 ms of Python, while main waits for the interpreter to receive it."""


def test_a_batch_that_waits_for_its_workers_interpreter_holds_nobody_else_up():
    """Taken for a delay of main, it would halve the throughput."""
    demands = batches(cpu_s=0.015, receive_blocked_s=0.05)
    demands = [replace(each, **HELD) for each in demands]
    found = calibrated(demands, Machine(cores=4))
    assert found.demands[0].receive_s == pytest.approx(0.001, rel=0.1)
    for setting in (Setting(1, 2), Setting(1, 4), Setting(2, 4)):
        prediction = predict(found, setting, STEP_S)
        expected = truth(demands, setting, Machine(cores=4)).batches_per_s
        assert prediction.batches_per_s == pytest.approx(expected, rel=0.16)


@pytest.mark.parametrize(("one_s", "two_s"), [(0.001, 0.006), (0.016, 0.010)])
def test_what_main_takes_with_two_workers_it_takes_with_more_of_them(one_s, two_s):
    """It is woken late beside them; or they hand over what one worker cannot so soon."""

    def sent(workers):
        receive_s = one_s if workers == 1 else two_s
        return [replace(each, receive_s=receive_s) for each in batches(cpu_s=0.002)]

    machine = Machine(cores=4)
    runs = [run_of(sent(each.num_workers), each, machine) for each in (Setting(1, 1), Setting(2))]
    found = calibrate(runs, machine.cores)
    for setting in (Setting(1, 4), Setting(2, 4), Setting(4, 2)):
        expected = truth(sent(setting.num_workers), setting, machine).batches_per_s
        told = predict(found, setting, STEP_S).batches_per_s
        assert told == pytest.approx(expected, rel=0.03)


def test_rare_slow_batches_are_kept_with_their_neighbours():
    demands = [Demand(latency_s=0.2 if number % 20 == 7 else 0.005) for number in range(400)]
    found = calibrated(demands, Machine(cores=2))
    expected = truth(demands, Setting(2, 4), Machine(cores=2)).batches_per_s
    low, high = predict(found, Setting(2, 4), STEP_S).interval
    assert low < expected < high
