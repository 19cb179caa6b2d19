"""A stretch begins when the buffers of its setting are full, and is long enough to compare."""

from __future__ import annotations

from typing import Any

from pipeprof.loaders.instrument.device_monitor import DeviceWaits
from pipeprof.loaders.tune.stretch_clock import LEAST_BATCHES, Delivered, StretchClock
from pipeprof.model import TunedSetting

TWO = TunedSetting(2, 2)


def note(clock: StretchClock, asked_s: float, delivered_s: float, **more: Any) -> None:
    clock.batch(Delivered(TWO, asked_s, delivered_s, **more))


def test_a_wait_that_the_accelerator_hid_starves_nobody():
    clock = StretchClock(TWO)
    for number in range(1, 50):
        # a step of 10 ms is queued, and the loop waits for the next batch meanwhile
        known_s = 0.008 * max(0, number - 2)  # the device lags behind
        note(clock, 0.010 * number - 0.008, 0.010 * number, waits=DeviceWaits(known_s, known_s))
    assert clock.stretch().fed.starved_fraction < 0.02


def timed(batches: int, cycle_s: float, waited_s: float) -> StretchClock:
    clock = StretchClock(TWO)
    for number in range(batches):
        note(clock, number * cycle_s - waited_s, number * cycle_s)
    return clock


def test_batches_that_fill_the_buffers_do_not_count() -> None:
    clock = timed(TWO.outstanding + 1 + 30, cycle_s=0.1, waited_s=0.04)
    stretch = clock.stretch()
    assert stretch.batches == 30
    assert round(stretch.fed.batches_per_s, 6) == 10
    assert round(stretch.fed.starved_fraction, 6) == 0.4


def test_it_is_long_enough_in_batches_and_in_time() -> None:
    filled = TWO.outstanding + 1
    assert not timed(filled + LEAST_BATCHES - 1, 0.1, 0).long_enough
    assert timed(filled + LEAST_BATCHES, 0.1, 0).long_enough
    assert not timed(filled + LEAST_BATCHES, 0.01, 0).long_enough


def test_a_new_epoch_fills_the_buffers_again() -> None:
    clock = timed(TWO.outstanding + 1 + 5, 0.1, 0)
    clock.interrupt()
    note(clock, 100.0, 100.0)
    assert clock.batches == 5


def test_a_pause_and_the_batches_that_were_fetched_meanwhile_do_not_count() -> None:
    clock = timed(TWO.outstanding + 1 + 30, cycle_s=0.1, waited_s=0.04)
    note(clock, 100.0, 100.0, after_pause=True)
    for number in range(TWO.outstanding):  # they lie ready
        note(clock, 100.01 + number / 100, 100.01 + number / 100)
    assert clock.batches == 30
    note(clock, 100.10, 100.14)
    assert clock.batches == 31


def test_where_pauses_follow_each_other_half_of_the_batches_count() -> None:
    clock = timed(TWO.outstanding + 1, 0.1, 0)
    for number in range(60):
        note(clock, 10.0 + number, 10.0 + number, after_pause=number % 6 == 0)
    assert clock.batches == 20
