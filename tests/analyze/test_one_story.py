"""A report does not contradict itself, or says why its parts name different things."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pipeprof.analyze.advice.disagreements import disagreements, same, worth_differs
from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.wording.report import explanations
from pipeprof.model import Diagnosis, Speedup, Worth
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import seen, set_to, slow_batches, transferred

STARVED = Diagnosis("starved", 0.8, (0.7, 0.9), 0.05, "decode", "Starved.", 0.2)


def worth(share):
    return Worth(
        Speedup(share, (share - 0.02, share + 0.02)), Speedup(2 * share, (share, 3 * share))
    )


BLAME = {"decode": 1.0, "transfer": 0.5}


def story(ceiling="workers", setting=None, workers=2):
    return explanations(disagreements(STARVED, BLAME, ceiling, setting, workers))


def of_worth(*shares):
    worths = {name: worth(share) for name, share in zip(BLAME, shares, strict=True)}
    return explanations(worth_differs(STARVED, BLAME, worths))


def test_parts_that_agree_need_no_words():
    assert story(setting="num_workers") == ()
    assert of_worth(0.3, 0.01) == ()


def test_another_cause_that_is_worth_more_is_explained():
    (why,) = of_worth(0.02, 0.3)
    assert why.startswith("transfer is worth more than decode")


def test_gains_of_one_run_share_its_noise_and_differ_only_by_the_error_of_the_model():
    (why,) = of_worth(0.05, 0.13)  # intervals of runs would overlap
    assert why.startswith("transfer is worth more")
    (why,) = of_worth(0.10, 0.13)
    assert "worth the same" in why


def test_another_ceiling_is_explained():
    (why,) = story(ceiling="transfer")
    assert "The lowest ceiling is transfer, the cause is decode" in why
    (why,) = story(ceiling="accelerator")
    assert "some batches are late" in why
    (why,) = story(ceiling="accelerator", workers=0)
    assert "the times of both add up" in why


def test_advice_about_something_else_is_explained():
    (why,) = story(setting="collate_fn")
    assert "about collate_fn, not decode" in why


def test_storage_workers_and_stages_are_one_matter():
    assert same("read", "storage-bandwidth")
    assert same("fetch", "workers")
    assert not same("transfer", "workers")


def random_run(chance):
    kind = chance.choice((workers_run, workers_run, inline_run, slow_batches, transferred))
    if kind is workers_run:
        run = workers_run(
            chance.randint(30, 150), chance.randint(1, 6), chance.uniform(0.001, 0.05),
            chance.uniform(0.0001, 0.02), chance.uniform(0.0005, 0.03), chance.random(),
        )  # fmt: skip
        run = seen(run, runqueue_s=chance.uniform(0, 0.02), tensors=chance.choice((1, 40)))
    elif kind is inline_run:
        run = inline_run(
            chance.randint(20, 90), *(chance.uniform(0, 0.01) for _ in range(5)),
            jitter=chance.uniform(0, 0.5), sampler_s=chance.uniform(0, 0.01),
        )  # fmt: skip
    else:
        run = kind()
    return set_to(run, in_order=chance.random() < 0.8)


def is_worth_most(cause, worths):
    most = max((each.cheaper.share for each in worths.values()), default=0.0)
    return cause not in worths or worths[cause].cheaper.share >= most - 0.01


def agree(profile, cause):
    """Of the ceilings and the advice, whether they name the cause, as a reader would see it."""
    yield same(cause, next(iter(profile.ceilings), cause))
    if profile.recommendations:
        cures = {
            "collate_fn": ("transfer", "main", "pin", "sampler"),
            "batch_size": ("transfer", "main", "pin", "sampler"),
            "sampler": ("sampler", "transfer", "main", "pin"),
        }  # fmt: skip
        yield cause in cures.get(profile.recommendations[0].setting, (cause,))


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 24))]
)
def test_a_starved_report_names_one_thing_or_says_why_not(seed):
    profile = assemble(random_run(random.Random(seed)))
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)
    if profile.diagnosis.verdict != "starved" or set(profile.blame) == {"unknown"}:
        return
    bottleneck = next(iter(profile.blame))
    headline = profile.diagnosis.headline
    assert bottleneck in headline
    cause = next(name for name in profile.blame if name != "unknown")
    assert is_worth_most(cause, profile.worth) or profile.diagnosis.worth_note
    assert all(agree(profile, cause)) or profile.diagnosis.disagreements


def test_a_cause_that_is_mostly_unknown_is_said_to_be():
    recording = workers_run()
    lost = replace(
        recording.batches,
        fetch_start_s=tuple(
            None if row % 5 else value for row, value in enumerate(recording.batches.fetch_start_s)
        ),
    )
    profile = assemble(replace(recording, batches=lost))
    assert profile.diagnosis.bottleneck is None
    assert profile.diagnosis.disagreements[0].endswith("A longer run leaves less unknown.")
