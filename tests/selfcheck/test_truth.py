"""The true times of a pipeline, from iterations in which every moment is known."""

import math
from itertools import pairwise

import numpy as np
import pytest

from pipeprof.model import Span, Stage
from pipeprof.selfcheck.truth import charges, read_in, train_epoch, true_seconds
from tests.selfcheck.known import COUNT, TRUE_MS, iteration, iterations


def test_every_stage_is_what_its_moments_say():
    truth = {
        name: float(seconds.mean()) * 1e3 for name, seconds in true_seconds(iterations()).items()
    }
    assert math.isnan(truth.pop("pin")), "nothing was pinned"
    assert truth == pytest.approx(TRUE_MS)


def test_the_charges_of_each_batch_add_up_to_its_wait():
    total = sum(charges(iterations()).values())
    assert total == pytest.approx(true_seconds(iterations())["wait"])


def test_without_a_worker_nothing_was_transferred():
    truth = true_seconds(iterations(worker=False))
    for name in ("transfer", "serialise", "pipe", "unpickle", "reorder"):
        assert np.isnan(truth[name]).all(), name
    assert float(truth["awaited in main"][0]) == pytest.approx(0.004)
    assert float(truth["awaited in transfer"][0]) == 0


def test_a_batch_that_lay_in_the_pipe_before_it_was_asked_for_says_nothing_of_the_pipe():
    lay = iteration()
    lay.asked_s = lay.begin.unpickled_s + 0.001
    assert math.isnan(true_seconds([lay])["pipe"][0])


def test_a_batch_ready_early_waits_for_those_before_it_and_then_is_slack():
    slow, quick = iteration(0), iteration(0)
    quick.end.pickled_s = slow.end.pickled_s - 0.004
    quick.asked_s = slow.end.pickled_s + 0.006
    truth = true_seconds([slow, quick])
    assert list(truth["reorder"]) == pytest.approx([0, 0.004])
    assert float(truth["ready"][1]) == pytest.approx(0.006)


def test_alternating_stages_are_charged_separately():
    alternating = iteration()
    sample = alternating.fetch.samples[0]
    start = sample.start_s
    spans = tuple(
        Span(stage, start + a / 1e3, start + b / 1e3)
        for stage, a, b in (
            (Stage.READ, 0, 2), (Stage.DECODE, 2, 4), (Stage.READ, 4, 6), (Stage.DECODE, 6, 8),
        )
    )  # fmt: skip
    object.__setattr__(sample, "spans", spans)
    assert float(charges([alternating])["read"][0]) == pytest.approx(0.003)
    assert float(charges([alternating])["decode"][0]) == pytest.approx(0.004)


def test_what_was_read_is_counted():
    assert read_in(iterations(), "bytes") == 500 * COUNT
    assert read_in(iterations(), "requests") == 2 * COUNT


def test_the_training_loop_clocks_itself_and_frees_each_batch_within_its_step():
    freed = []

    class Freed:
        fetch = begin = end = None

        def __del__(self):
            freed.append(self)

    steps = []
    finished = train_epoch((Freed() for _ in range(3)), lambda batch: steps.append(len(freed)))
    assert steps == [0, 1, 2]
    assert len(freed) == 3
    for before, after in pairwise(finished):
        assert before.asked_s <= before.delivered_s <= before.done_s == after.asked_s
