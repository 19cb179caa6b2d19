"""A stretch begins when the buffers of its setting are full, and is long enough to compare."""

from __future__ import annotations

from dataclasses import replace
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


def test_waits_for_other_loaders_are_known() -> None:
    """Of each cycle of 0.1 s, the loop waits 0.05 s for another loader, and 0.02 s for this one."""
    clock = StretchClock(TWO)
    for number in range(TWO.outstanding + 1 + 30):
        note(clock, number / 10 - 0.02, number / 10, others_s=0.05)
    stretch = clock.stretch()
    assert round(stretch.fed.batches_per_s, 6) == 10
    assert round(stretch.batches_per_s_alone, 6) == 20
    assert round(replace(stretch, made_every_s=0.04).batches_per_s_alone, 6) == 25
    assert round(replace(stretch, made_every_s=0.02).batches_per_s_alone, 6) == 33.333333, (
        "the step"
    )
    assert round(stretch.fed.starved_fraction, 6) == 0.2
    assert round(stretch.fed.others_fraction, 6) == 0.5


def test_batches_that_fill_the_buffers_do_not_count() -> None:
    clock = timed(TWO.outstanding + 1 + 30, cycle_s=0.1, waited_s=0.04)
    stretch = clock.stretch()
    assert stretch.batches == 30
    assert round(stretch.fed.batches_per_s, 6) == 10
    assert round(stretch.fed.starved_fraction, 6) == 0.4


def test_batches_of_switching_are_counted_apart() -> None:
    """Those of the former setting, and those that fill the buffers. The first one's time is not
    known."""
    clock = StretchClock(TWO)
    former = TunedSetting(1, 2)
    for number in range(4):
        clock.batch(Delivered(former, number, number))
    clock.batch(Delivered(former, 60.0, 60.0, after_pause=True))
    clock.batch(Delivered(former, 61.0, 61.0))  # fetched during the pause
    clock.batch(Delivered(former, 62.0, 62.0))
    for number in range(TWO.outstanding + 1 + 3):
        note(clock, 62.5 + number / 2, 62.5 + number / 2)
    stretch = clock.stretch()
    assert (stretch.batches, stretch.seconds) == (3, 1.5)
    assert stretch.switching == 3 + 0 + TWO.outstanding + 1
    assert stretch.switching_s == 3.0 + 0.5 * (TWO.outstanding + 1)


def test_batches_of_another_setting_never_count() -> None:
    """An epoch begins with the present setting, until the workers of the trial are ready."""
    clock = timed(TWO.outstanding + 1 + 5, 0.1, 0)
    clock.interrupt()
    for number in range(50):
        clock.batch(Delivered(TunedSetting(1, 2), 10.0 + number, 10.0 + number))
    for number in range(TWO.outstanding + 1 + 3):
        note(clock, 60.0 + number / 10, 60.0 + number / 10)
    assert clock.batches == 5 + 3
    assert round(clock.seconds, 6) == 0.8


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
