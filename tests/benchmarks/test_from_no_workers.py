"""The bench of advice for loaders without workers: what it draws, and how it judges a promise."""

from __future__ import annotations

from itertools import islice

from benchmarks.from_no_workers import Acted, advice_of, drawn, summary
from pipeprof.model import MainProcess, Recommendation
from tests.analyze.pipelines import inline_run
from tests.analyze.runs import seen


def promise(rate: float | None, interval: tuple[float, float] | None) -> Recommendation:
    return Recommendation(
        setting="num_workers", current="0", proposed="2", why="", code="",
        predicted_samples_per_s=rate, interval=interval,
    )  # fmt: skip


def test_no_loader_has_workers_and_the_same_seed_draws_the_same() -> None:
    loaders = [*islice(drawn(7), 30)]
    assert {spec.num_workers for spec, _ in loaders} == {0}
    assert {megabytes for _, megabytes in loaders} == {4, 16, 40}
    assert loaders == [*islice(drawn(7), 30)]


def test_a_promise_is_a_rate_or_the_middle_of_a_range() -> None:
    number = Acted(promise(120.0, (90.0, 130.0)), 50.0, (95.0, 105.0))
    assert (round(number.error or 0, 6), number.held, number.gain) == (0.2, [True, True], 1.0)
    span = Acted(promise(None, (100.0, 120.0)), 200.0, (95.0, 105.0))
    assert (round(span.error or 0, 6), span.held, span.gain) == (0.1, [False, True], -0.5)
    nothing = Acted(promise(None, None), 50.0, (100.0, 100.0))
    assert (nothing.error, nothing.held) == (None, [])
    line = summary("advice", [number, span])
    assert "2 loaders, promises off by +15 % in the middle" in line
    assert "intervals hold 75 % of 4 runs; gains -50 to +100 %, slower than before in 1" in line


def test_the_control_knows_no_cost_of_memory() -> None:
    run = seen(inline_run(step_s=0.001), MainProcess(new_shared_s_per_byte=0.5e-9), tensors=1,
               batch_bytes=20e6)  # fmt: skip
    ours, control = advice_of(run), advice_of(run, free_memory=True)
    assert ours
    assert control
    assert "one worker gives 1,280 samples/s here" in ours.why
    assert "one worker gives 2,133 samples/s here" in control.why
