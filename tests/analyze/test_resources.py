"""Simulated time: who gets what, and when."""

import pytest

from pipeprof.analyze.predict.event_engine import (
    Locks,
    Mailbox,
    SharedResource,
    Time,
    TokenBucket,
    World,
)


def uses(world, told, name, *wants):
    """A process that notes when it has got each of ``wants``."""
    for want in wants:
        yield want
        told.append((name, round(world.now, 9)))


def test_a_core_is_shared_evenly_by_those_who_want_it():
    cores, told = SharedResource(total=1), []
    world = World([cores])
    world.wake(uses(world, told, "short", (cores, 1.0)))
    world.run(uses(world, told, "long", (cores, 3.0)))
    # half of it each until 2 s, then all of it
    assert told == [("short", 2.0), ("long", 4.0)]


def test_nobody_is_faster_than_one_core():
    cores, told = SharedResource(total=8), []
    world = World([cores])
    world.run(uses(world, told, "alone", (cores, 3.0)))
    assert told == [("alone", 3.0)]


def test_a_bucket_is_fast_until_it_is_empty():
    link, told = TokenBucket(total=1.0, burst=4.0, peak=5.0), []
    world = World([link])
    # 4 tokens at 5 a second, gaining 1: 5 units in the first second, then 1 a second
    world.run(uses(world, told, "all", (link, 5.0), (link, 2.0)))
    assert told == [("all", 1.0), ("all", 3.0)]


def test_a_lock_is_waited_for_until_its_owner_lets_go():
    time, locks, told = Time(), Locks(), []
    world = World([time, locks])

    def owner():
        yield time, 3.0
        locks.release(1)
        locks.release(1)  # nobody waits any more
        yield time, 10.0

    world.wake(uses(world, told, "patient", (locks.of(1), 5.0)))
    world.wake(uses(world, told, "given it", (locks.of(1), 2.0)))
    world.wake(uses(world, told, "another's", (locks.of(2), 5.0)))
    world.run(owner())
    assert told == [("given it", 2.0), ("patient", 3.0), ("another's", 5.0)]


def test_who_has_stopped_to_wait_for_a_lock_is_not_woken_by_its_release():
    time, locks, told = Time(), Locks(), []
    world = World([time, locks])

    def owner():
        yield time, 3.0
        locks.release(1)
        yield time, 10.0

    world.wake(uses(world, told, "next", (locks.of(1), 2.0), (locks.of(2), 5.0)))
    world.run(owner())
    assert told == [("next", 2.0), ("next", 7.0)]


def test_what_takes_nothing_is_not_waited_for():
    cores, told = SharedResource(total=1), []
    world = World([cores])
    world.run(uses(world, told, "quick", (cores, 0.0)))
    assert told == [("quick", 0.0)]


def test_several_may_wait_at_one_mailbox_and_each_gets_one_thing():
    time = Time()
    world = World([time])
    box, got = Mailbox(world), []

    def taker(name):
        while True:
            yield box
            got.append((name, box.take(), world.now))
            yield time, 10.0

    def giver():
        for thing in range(4):
            yield time, 1.0
            box.put(thing)
        yield time, 100.0

    world.wake(taker("a"))
    world.wake(taker("b"))
    world.run(giver())
    assert got == [("a", 0, 1.0), ("b", 1, 2.0), ("a", 2, 11.0), ("b", 3, 12.0)]


def test_whoever_is_woken_too_late_waits_again():
    time = Time()
    world = World([time])
    box, got = Mailbox(world), []

    def taker(name):
        yield box
        got.append((name, box.take()))

    def giver():
        yield time, 1.0
        box.put("first")
        # woken already, but this one is quicker
        yield box
        got.append(("giver", box.take()))
        yield time, 1.0
        box.put("second")
        yield time, 1.0

    world.wake(taker("waiting"))
    world.run(giver())
    assert got == [("giver", "first"), ("waiting", "second")]


def test_a_world_in_which_nothing_can_happen_ends():
    world = World([Time()])
    world.run(iter([Mailbox(world)]))
    assert world.now == pytest.approx(0)
