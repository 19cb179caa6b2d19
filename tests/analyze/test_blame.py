"""What a stall is charged to, on made-up batches whose every moment is known. Times are in ms."""

from __future__ import annotations

import numpy as np
import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.stall_attribution import causes, places
from pipeprof.model import BatchLog
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import seen

NUMBER = 40


def run(**moments):
    """Batches of one worker every 20 ms, each asked for as the last one was handed out. ``moments``
    are ms after that, and make up for what is not said: a batch that is made while main waits."""
    each = {
        "asked": 0.0, "fetch_start": 0.0, "fetch_end": 18.0, "sent": 18.5, "received": 19.0,
        "arrived": 19.9, "delivered": 20.0, "done": 20.0, **moments,
    }  # fmt: skip
    turn = 20e-3 * np.arange(NUMBER)
    columns = {f"{name}_s": turn + moment * 1e-3 for name, moment in each.items()}
    return log(**columns)


def log(**columns):
    count = len(columns["asked_s"])
    plain = {
        "index": np.arange(count), "nth": np.arange(count), "epoch": np.zeros(count),
        "epoch_batches": np.full(count, count), "worker": np.zeros(count),
        "samples": np.ones(count), "collate_s": np.zeros(count), "turns": np.zeros(count),
        "read_s": np.zeros(count), "decode_s": np.zeros(count), "transform_s": np.zeros(count),
    }  # fmt: skip
    return Columns.of(BatchLog(**{
        name: tuple(values.tolist()) for name, values in (plain | columns).items()
    }))  # fmt: skip


def replaced(columns, **others):
    return Columns(columns._arrays | {
        name: np.broadcast_to(np.asarray(values, float), (len(columns),)).copy()
        for name, values in others.items()
    })  # fmt: skip


def ms(charges, rows=slice(5, 30)):
    """Of a batch, by cause; without what took nothing."""
    mean = {name: 1e3 * float(seconds[rows].mean()) for name, seconds in charges.items()}
    return {name: figure for name, figure in mean.items() if figure > 1e-9}


def test_a_batch_that_is_made_while_main_waits():
    charges, held = causes(run())
    assert ms(charges) == pytest.approx({"fetch": 18.0, "transfer": 1.9, "main": 0.1})
    assert not ms(held)


def lying_in_main():
    """Batches of which most of the wait is between their arrival and their delivery."""
    columns = run(fetch_start=-19.0, fetch_end=-1.0, sent=-0.5, received=0.2, arrived=0.4)
    arrived_s = columns.arrived_s.copy()
    arrived_s[30:] = columns.delivered_s[30:] - 0.1e-3  # to hand a batch out needs as little
    return replaced(columns, arrived_s=arrived_s)


def test_a_batch_that_lies_in_main_waits_for_a_core_where_main_did_so_in_the_run():
    columns = lying_in_main()
    by_itself, short_of_cores = (ms(causes(columns, share)[0]) for share in (0.05, 0.3))
    # meanwhile its worker fetches the next batch, for 18 ms of the 20
    assert by_itself["main"] == pytest.approx(19.6)
    assert short_of_cores["worker-cpu"] == pytest.approx(19.5 * 18 / 19.6, rel=0.02)
    assert sum(short_of_cores.values()) == pytest.approx(sum(by_itself.values()))


def interpreter_waited_for(**others):
    """A batch was made in the turn before. Its worker, making the next one, answers main when that
    is done: unpickling takes 18.8 ms, of which main computes 0.4."""
    columns = run(fetch_start=-19.0, fetch_end=-1.0, sent=-0.5, received=0.2, arrived=19.0)
    return replaced(columns, unpickled_cpu_s=0.4e-3, serialised_cpu_s=0.1e-3, **others)


def test_a_hand_over_that_waits_for_the_interpreter_is_what_the_worker_did_then():
    columns = interpreter_waited_for()
    charges, held = causes(columns)
    # from 1.0 on the worker makes the next batch; between batches its feeder thread could answer
    found = ms(charges)
    assert found["fetch"] > 16
    assert found["transfer"] == pytest.approx(0.2 + 0.4 + 0.8 + 0.7, abs=0.3)
    assert found["main"] == pytest.approx(1.0)
    assert ms(held)["fetch"] == found["fetch"]
    assert ms(places(columns)) == pytest.approx({"transfer": 19.0, "main": 1.0})


def test_one_hand_over_of_an_idle_worker_shows_how_little_it_needs():
    columns = interpreter_waited_for()
    arrived_s = columns.arrived_s.copy()
    arrived_s[25] = columns.received_s[25] + 0.5e-3  # before the next fetch; 0.4 of it computing
    charges, _ = causes(replaced(columns, arrived_s=arrived_s))
    assert ms(charges, slice(5, 25))["transfer"] == pytest.approx(0.2 + 0.4 + 0.1 + 0.7, abs=0.3)


def test_of_the_next_batch_it_is_the_stage_that_ran_meanwhile():
    # of 18 ms the first 2 are read, the next 6 decoded: both lie in the hand-over of the one before
    charges, _ = causes(interpreter_waited_for(read_s=2e-3, decode_s=6e-3, turns=2.0))
    found = ms(charges)
    assert found["read"] / found["decode"] == pytest.approx(2 / 6, rel=0.01)
    assert found["fetch"] / found["decode"] == pytest.approx(10 / 6, rel=0.01)


def test_a_worker_that_waits_itself_holds_up_nobody():
    """It sleeps: its other threads have the interpreter, so the hand-over is just slow."""
    charges, held = causes(interpreter_waited_for(cpu_s=0.1e-3, runqueue_s=0.0))
    assert ms(charges)["transfer"] == pytest.approx(19.0)
    assert not ms(held)


def test_many_tensors_are_their_own_cause_beside_a_worker_that_computes():
    """Unpickling takes 8 ms and twice as much waiting, as 40 handshakes do by themselves."""
    charges, _ = causes(replaced(interpreter_waited_for(), unpickled_cpu_s=8e-3))
    assert ms(charges)["transfer"] > 18


def test_what_the_feeder_thread_computes_is_the_batchs_own():
    columns = replaced(run(sent=0.0, fetch_start=-37.0, fetch_end=-19.0), sent_s=np.nan)
    sent = columns.asked_s + 15e-3
    columns = replaced(columns, sent_s=sent, serialised_cpu_s=14e-3)
    charges, _ = causes(columns)
    # serialising lasts 34 ms, of which 15 lie in the stall: no more than its CPU time is its own
    assert ms(charges)["transfer"] == pytest.approx(14 + 4.9, abs=0.6)


def test_a_wait_for_a_core_is_told_from_the_stage():
    charges, _ = causes(replaced(run(), cpu_s=6e-3, runqueue_s=9e-3))
    assert ms(charges)["worker-cpu"] == pytest.approx(9.0)
    assert ms(charges)["fetch"] == pytest.approx(9.0)


def test_an_idle_workers_hand_over_waits_for_a_core_where_cores_are_short():
    late = run(fetch_start=-60.0, fetch_end=-50.0, sent=-49.0, received=0.1, arrived=19.9)
    late = replaced(late, unpickled_cpu_s=0.5e-3)
    quick = np.arange(NUMBER) % 2 == 0  # an undisturbed one takes 0.7 ms
    late = replaced(late, arrived_s=np.where(quick, late.received_s + 0.7e-3, late.arrived_s))
    for runqueue_s, cause in ((5e-3, "worker-cpu"), (0.0, "transfer")):
        charges, _ = causes(replaced(late, cpu_s=5e-3, runqueue_s=runqueue_s))
        found = ms(charges, slice(5, 30, 2))
        assert max(found, key=found.__getitem__) == cause


def test_main_that_was_busy_with_another_batch_waited_for_what_that_one_did():
    """Two workers. The second's batch is received first, and waits for its worker's interpreter;
    the first one's, which is due, lies in the pipe meanwhile."""
    columns = interpreter_waited_for()
    due, other = np.arange(0, NUMBER, 2), np.arange(1, NUMBER, 2)
    moved = {name: getattr(columns, name).copy() for name in ("received_s", "arrived_s")}
    moved["received_s"][due], moved["arrived_s"][due] = (
        columns.asked_s[due] + 18.9e-3, columns.asked_s[due] + 19.5e-3
    )  # fmt: skip
    moved["received_s"][other] = columns.asked_s[due] + 0.2e-3
    moved["arrived_s"][other] = columns.asked_s[due] + 18.8e-3
    columns = replaced(columns, worker=np.arange(NUMBER) % 2, **moved)
    sent = columns.sent_s.copy()
    sent[other] = columns.asked_s[due] - 20.5e-3
    begun = columns.fetch_start_s.copy()
    begun[other] = columns.asked_s[due] - 39e-3
    end = columns.fetch_end_s.copy()
    end[other] = columns.asked_s[due] - 21e-3
    columns = replaced(columns, sent_s=sent, fetch_start_s=begun, fetch_end_s=end)
    stalls = columns.stall_s.copy()
    charges, held = causes(columns)
    assert ms(charges, due[3:12])["fetch"] > 14
    assert ms(held, due[3:12])["fetch"] > 14
    assert sum(charges.values()) == pytest.approx(stalls)


def test_a_worker_without_a_task_is_dispatch():
    """A batch is begun 10 ms after it was asked for, by a worker that had nothing to do."""
    charges, _ = causes(run(fetch_start=10.0))
    assert ms(charges) == pytest.approx(
        {"dispatch": 10.0, "fetch": 8.0, "transfer": 1.9, "main": 0.1}
    )


def test_an_epochs_first_batch_waits_for_the_start_of_its_worker():
    charges, _ = causes(replaced(run(), fetch_start_s=run().fetch_start_s + 5e-3))
    assert ms(charges, slice(0, 1))["start-up"] == pytest.approx(5.0)


def test_without_workers_main_makes_the_batch():
    profile = assemble(inline_run(sampler_s=0.003))
    assert profile.blame == pytest.approx(profile.awaited_in)
    assert profile.blame["sampler"] / 49 == pytest.approx(0.003)


LOST = {"fetch_start_s": None, "fetch_end_s": None, "sent_s": None, "worker": -2}


@pytest.mark.parametrize("every", [1, 2, 5])
def test_where_records_are_lost_the_cause_is_unknown(every):
    recording = workers_run()
    losing = {
        name: tuple(
            lost if row % every == 0 else value
            for row, value in enumerate(getattr(recording.batches, name))
        )
        for name, lost in LOST.items()
    }
    profile = assemble(seen(recording, **losing))
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)
    assert profile.blame["unknown"] >= 0.8 * profile.stall_s / every


def test_the_next_batch_that_never_came_is_unknown():
    """The last batch's worker may have been at another: nobody has its record."""
    charges, _ = causes(interpreter_waited_for())
    assert ms(charges, slice(NUMBER - 1, NUMBER))["unknown"] > 15


@pytest.mark.parametrize("seed", range(20))
def test_however_odd_the_moments_are_the_charges_add_up_to_the_stall(seed):
    chance = np.random.default_rng(seed)
    count = 60
    names = ("fetch_start_s", "fetch_end_s", "sent_s", "received_s", "arrived_s", "pinned_s")
    asked = np.cumsum(chance.exponential(0.01, count))
    delivered = asked + chance.exponential(0.005, count)
    moments = {name: delivered + chance.normal(-0.01, 0.02, count) for name in names}
    for values in moments.values():
        values[chance.random(count) < 0.2] = np.nan
    parts = ("collate_s", "read_s", "decode_s", "unpickled_cpu_s", "serialised_cpu_s", "sampler_s",
             "runqueue_s", "cpu_s")  # fmt: skip
    columns = log(asked_s=asked, delivered_s=delivered, done_s=delivered)
    columns = replaced(
        columns, **moments, **{name: chance.exponential(0.005, count) for name in parts},
        turns=chance.integers(0, 5, count), worker=chance.integers(-2, 3, count),
        nth=np.arange(count) % 25, epoch=np.arange(count) // 25,
    )  # fmt: skip
    for charges in (causes(columns)[0], places(columns)):
        assert all((seconds >= -1e-12).all() for seconds in charges.values())
        assert sum(charges.values()) == pytest.approx(columns.stall_s)
