"""Which worker sets the pace, on made-up batches of one worker. Times are in ms."""

from __future__ import annotations

import numpy as np
import pytest

from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.pace import Pace
from pipeprof.analyze.profile.stall_attribution import causes, places
from tests.analyze.test_blame import log, ms

NUMBER = 40


def pinned_run(make: float, pin: float, most_ahead: int = 2) -> Columns:
    """Batches that one worker makes and a pin thread pins, each as soon as it can. Main takes no
    time, and dispatches a batch when it takes the one that is ``most_ahead`` before."""
    made, pinned, begun = np.zeros(NUMBER), np.zeros(NUMBER), np.zeros(NUMBER)
    for each in range(NUMBER):
        dispatched = pinned[each - most_ahead] if each >= most_ahead else 0.0
        begun[each] = max(dispatched, made[each - 1] if each else 0.0)
        made[each] = begun[each] + make
        pinned[each] = max(made[each], pinned[each - 1] if each else 0.0) + pin
    received = np.maximum(made, np.append(0.0, pinned[:-1]))
    asked = np.append(0.0, pinned[:-1])
    moments = {
        "asked": asked, "fetch_start": begun, "fetch_end": made, "sent": made, "received": received,
        "arrived": received, "pinned": pinned, "delivered": pinned, "done": pinned,
    }  # fmt: skip
    return log(**{f"{name}_s": values * 1e-3 for name, values in moments.items()})


def test_a_pin_thread_that_keeps_up_with_its_worker_costs_nothing():
    columns = pinned_run(make=40.0, pin=25.0)
    charges = ms(causes(columns)[0])
    assert charges.pop("fetch") == pytest.approx(40.0)
    assert sum(charges.values()) < 1e-3
    assert ms(places(columns)) == pytest.approx({"fetch": 15.0, "pin": 25.0}), "where it was"


def test_a_pin_thread_that_is_slower_than_its_worker_sets_the_pace():
    assert ms(causes(pinned_run(make=25.0, pin=40.0))[0]) == pytest.approx({"pin": 40.0})


def test_a_worker_that_waits_for_main_to_ask_sets_no_pace():
    """With one batch at a time nothing overlaps, and each part is all that is waited for."""
    charges, _ = causes(pinned_run(make=40.0, pin=25.0, most_ahead=1))
    assert ms(charges) == pytest.approx({"fetch": 40.0, "pin": 25.0})


def test_the_last_batch_is_followed_by_none_that_is_waited_for():
    charges, _ = causes(pinned_run(make=40.0, pin=25.0))
    assert ms(charges, slice(NUMBER - 1, NUMBER)) == pytest.approx({"fetch": 15.0, "pin": 25.0})


def test_the_pace_is_told_by_the_batch_that_is_waited_for_next():
    pace = Pace(pinned_run(make=40.0, pin=25.0))
    rows, begun, ended = pace.within(np.array([0.100]), np.array([0.110]))
    assert rows >= 0
    assert (begun, ended) == (0.100, 0.110)
    after_all = np.array([1e3])
    assert pace.within(after_all, after_all + 1)[0] == -1


def test_without_batches_nobody_sets_the_pace():
    rows, begun, ended = Pace(Columns({name: np.zeros(0) for name in _NAMES})).within(
        np.array([0.0]), np.array([1.0])
    )
    assert (rows, begun, ended) == (-1, 0.0, 0.0)


_NAMES = (
    "index", "asked_s", "fetch_start_s", "fetch_end_s", "sent_s", "received_s", "pinned_s",
    "delivered_s", "worker", "epoch", "device_wait_s",
)  # fmt: skip
