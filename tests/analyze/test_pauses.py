"""Which steps are pauses: made-up steps whose truth is known, each family over many seeds."""

from collections.abc import Callable

import numpy as np
import pytest

from pipeprof.analyze.profile.batch_table import Columns, Floats, steady
from pipeprof.analyze.profile.pauses import PauseFinder
from pipeprof.model import BY_LENGTH

SEEDS = range(100)
Random = np.random.Generator


def base_s(random: Random) -> float:
    return float(10 ** random.uniform(-3, 0.3))


def jitter(random: Random, count: int) -> Floats:
    return random.lognormal(0, random.uniform(0, 0.3), count)


def log_normal(random: Random, count: int) -> Floats:
    return base_s(random) * random.lognormal(0, 1.0, count)


def growing(random: Random, count: int) -> Floats:
    along, times = np.arange(count) / count, random.uniform(1, 300)
    growth = 1 + times * along if random.random() < 0.5 else times**along
    return base_s(random) * growth * jitter(random, count)


def slower_from_then_on(random: Random, count: int) -> Floats:
    steps = base_s(random) * jitter(random, count)
    steps[random.integers(count // 3, count - 5) :] *= random.uniform(2, 500)
    return steps


def one_slow_in_20(random: Random, count: int) -> Floats:
    steps = base_s(random) * jitter(random, count)
    by_turns = np.arange(count) % 20 == 19
    steps[by_turns if random.random() < 0.5 else random.random(count) < 0.05] *= random.uniform(
        2, 25
    )
    return steps


def gradient_accumulation(random: Random, count: int) -> Floats:
    steps = base_s(random) * jitter(random, count)
    every = int(random.choice([2, 4, 8, 16, 32, 64]))
    steps[every - 1 :: every] *= random.uniform(1.5, 25)
    return steps


def compiled(random: Random, count: int) -> Floats:
    steps = base_s(random) * jitter(random, count)
    steps[: random.integers(1, 11)] *= 10 ** random.uniform(1, 4)
    return steps


def lengths_in_cycles(random: Random, count: int) -> Floats:
    lengths = np.linspace(1, random.uniform(2, 20), int(random.integers(5, 400)))
    if random.random() < 0.5:
        lengths = 2.0 ** np.floor(lengths / 3)
    return base_s(random) * np.resize(lengths, count) ** random.choice([1, 2])


def busy_machine(random: Random, count: int) -> Floats:
    steps = base_s(random) * jitter(random, count)
    late = random.random(count) < random.uniform(0.001, 0.05)
    steps[late] += random.exponential(0.03, int(late.sum()))
    return steps


ORDINARY = (
    log_normal, growing, slower_from_then_on, one_slow_in_20, gradient_accumulation, compiled,
    lengths_in_cycles, busy_machine,
)  # fmt: skip


def columns_of(step_s: Floats, workers: int = 1) -> Columns:
    """Batches that are there when asked for."""
    count, done_s = len(step_s), np.cumsum(step_s)
    number, unknown = np.arange(count, dtype=float), np.full(count, np.nan)
    return Columns({
        "index": number, "nth": number, "epoch": np.zeros(count),
        "epoch_batches": np.full(count, float(count)), "worker": np.full(count, workers - 1.0),
        "asked_s": done_s - step_s, "delivered_s": done_s - step_s, "done_s": done_s,
        "pause_s": unknown, "pause_kind": unknown, "rested": unknown, "device_busy_s": unknown,
    })  # fmt: skip


def marked(step_s: Floats, *cuts: int) -> Columns:
    finder = PauseFinder(4)
    every = columns_of(step_s)
    place = np.arange(len(step_s))
    parts = [
        finder.mark(every.take((place >= begin) & (place < end)))
        for begin, end in zip((0, *cuts), (*cuts, len(step_s)), strict=True)
    ]
    return Columns({
        name: np.concatenate([getattr(part, name) for part in parts]) for name in every._arrays
    })  # fmt: skip


def paused(columns: Columns) -> list[int]:
    return np.flatnonzero(columns.pause_s > 0).tolist()


@pytest.mark.parametrize("steps", ORDINARY)
@pytest.mark.parametrize("count", [60, 300, 5000])
def test_no_ordinary_step_is_a_pause(steps: Callable[[Random, int], Floats], count: int) -> None:
    for seed in SEEDS:
        assert paused(marked(steps(np.random.default_rng(seed), count))) == [], f"seed {seed}"


def test_last_steps_count_among_the_steps_of_which_few_may_be_pauses() -> None:
    """Two evaluations in 80 steps, the first 20 of which are not examined."""
    steps = 0.002 * np.random.default_rng(0).lognormal(0, 0.5, 80)
    steps[[30, 60]] = 0.6
    every = columns_of(steps)
    passes = every.replaced(
        epoch=every.index // 40, nth=every.index % 40, epoch_batches=np.full(80, 40.0)
    )
    assert paused(PauseFinder(4).mark(passes)) == [30, 60]


@pytest.mark.parametrize("known_s", [np.nan, 0.6], ids=["unknown", "known in part"])
def test_what_follows_the_last_batch_of_a_pass_is_a_pause_if_no_other_step_is_near_as_long(
    known_s: float,
) -> None:
    """A loop that counts its batches keeps the iterator until it makes the next one."""
    for seed in SEEDS:
        steps = 0.002 * np.random.default_rng(seed).lognormal(0, 0.5, 80)
        steps[[39, 79]] = 1.0, 0.05
        every = columns_of(steps)
        passes = every.replaced(
            epoch=every.index // 40, nth=every.index % 40, epoch_batches=np.full(80, 40.0),
            pause_s=np.where(every.index == 39, known_s, np.nan),
            pause_kind=np.where(every.index == 39, 0 * known_s, np.nan),
        )  # fmt: skip
        found = PauseFinder(4).mark(passes)
        assert paused(found) == [39], f"seed {seed}"
        assert found.pause_s[39] == pytest.approx(0.998, abs=0.002)
        assert found.pause_kind[39] == (0 if known_s == known_s else BY_LENGTH)


def test_a_loop_that_waits_for_its_device_now_and_then_does_not_pause() -> None:
    """It queues steps of 100 ms in no time, and reads a loss every 50 steps. The device tells that
    from a validation of 5 s."""
    host_s = np.full(1000, 0.001)
    host_s[49::50] = 5.0
    device_s = np.full(1000, 0.1)
    assert paused(marked(host_s)) == list(range(49, 1000, 50)), "by the host alone"
    every = columns_of(host_s).replaced(device_busy_s=device_s)
    assert paused(PauseFinder(4).mark(every)) == []
    device_s[[299, 599, 899]] += 5.0
    found = PauseFinder(4).mark(every)
    assert paused(found) == [299, 599, 899]
    assert found.pause_s[299] == pytest.approx(5.0, abs=0.01)


@pytest.mark.parametrize(("count", "at"), [(130, (60, 120)), (1000, range(60, 1000, 60))])
def test_a_second_of_validation_after_each_60_steps_of_2_ms_always_is(count, at) -> None:
    for seed in SEEDS:
        steps = 0.002 * np.random.default_rng(seed).lognormal(0, 0.5, count)
        steps[list(at)] += 1.0
        found = marked(steps)
        assert paused(found) == list(at), f"seed {seed}"
        assert set(found.pause_kind[list(at)]) == {BY_LENGTH}
        assert found.pause_s[list(at)] == pytest.approx(1.0, abs=0.02)
        assert found.step_s[list(at)].max() < 0.01


def test_one_pause_in_a_run_takes_a_gap_of_a_hundred() -> None:
    steps = np.full(1000, 0.01)
    steps[500] = 0.9
    assert paused(marked(steps)) == []
    steps[500] = 1.1
    assert paused(marked(steps)) == [500]


def test_pauses_of_two_kinds_are_both_found() -> None:
    steps = 0.005 * np.random.default_rng(0).lognormal(0, 0.3, 2000)
    steps[99::100] += 2.0
    steps[999::1000] += 30.0
    assert paused(marked(steps)) == list(range(99, 2000, 100))


def test_with_a_slow_step_between_the_two_groups_there_is_none() -> None:
    steps = np.full(1000, 0.01)
    steps[99::100] = 1.1
    steps[[150, 450]] = 0.15
    assert len(paused(marked(steps))) == 0


def test_it_hardly_matters_where_a_long_run_was_cut() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        steps = base_s(random) * jitter(random, 20_000)
        steps[int(random.integers(30, 400)) :: int(random.integers(40, 500))] += 200.0
        whole, cut = marked(steps), marked(steps, 8192, 16_384)
        assert paused(cut) == paused(whole)
        assert np.array_equal(np.isnan(cut.rested), np.isnan(whole.rested))


def test_batches_that_rested_are_those_made_ahead_at_most_half_of_what_is_left() -> None:
    steps = np.full(200, 0.01)
    steps[[50, 100, 107, 196]] += 5.0
    found = PauseFinder(4).mark(_told(columns_of(steps), (50, 100, 107, 196)))
    assert np.flatnonzero(found.rested == 1).tolist() == [
        *range(51, 55), *range(101, 104), *range(108, 112), 197,
    ]  # fmt: skip
    kept = steady(found, 4)
    assert not kept[[50, 51, 54, 100, 101, 107]].any()
    assert kept[[49, 55, 104, 105, 106, 198, 199]].all()


def test_without_workers_nothing_rests() -> None:
    found = PauseFinder(1).mark(_told(columns_of(np.full(50, 0.01), workers=0), (20,)))
    assert np.isnan(found.rested).all()


def test_where_most_steps_have_a_pause_the_rest_of_them_are_the_steps() -> None:
    found = PauseFinder(2).mark(_told(columns_of(np.full(50, 0.01)), range(50), 0.004))
    assert steady(found, 2).sum() == 48
    assert found.step_s == pytest.approx(0.006)


def _told(columns: Columns, places, pause_s: float = 5.0) -> Columns:
    known, kind = columns.pause_s.copy(), columns.pause_kind.copy()
    known[list(places)], kind[list(places)] = pause_s, 0
    return columns.replaced(pause_s=known, pause_kind=kind)
