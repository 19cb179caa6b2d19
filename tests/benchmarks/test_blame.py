"""The benchmark of blame, on made-up figures: what it says of them is known."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from benchmarks.blame import print_summary
from benchmarks.blame_judge import JUDGED, Judged, Said
from benchmarks.blame_runs import Tried, cuts_of, standard_error, try_out
from benchmarks.random_loader_runs import keep, load, rate
from benchmarks.random_loaders import Cost, LoaderSpec
from benchmarks.realised_cuts import QUARTER
from pipeprof.model import Speedup, Worth

READ, DECODE = Cost("sleep", "read", 1, 0.010), Cost("python", "decode", 1, 0.005)
SPEC = LoaderSpec(1, (READ, DECODE), annotated=True, num_workers=1)
TURNS = 3


def worth(share: float, half: float = 0.02) -> Worth:
    cheaper = Speedup(share, (share - half, share + half))
    return Worth(cheaper, Speedup(4 * share, (0.0, 1.0)))


def judged(blame, read=(1.15, 1.15, 1.15), decode=(1.05, 1.05, 1.05), promised=None, spec=SPEC):
    said = Said(dict(blame), promised or {})
    cuts = cuts_of(spec)
    gains = {cuts["read"]: read, cuts["decode"]: decode}
    return Judged(spec, 0.9, (said,) * TURNS, cuts, gains)


def outcome(one):
    return one.outcome(one.profiles[0])


def test_blamed_first_is_what_gains_most():
    assert outcome(judged({"read": 3.0, "decode": 1.0})) == "most"
    assert outcome(judged({"decode": 3.0, "read": 1.0})) == "wrong"


def test_gains_that_chance_makes_differ_are_not_told_apart():
    loud = judged({"decode": 3.0, "read": 1.0}, read=(1.3, 1.1, 1.0), decode=(1.2, 0.9, 1.05))
    assert loud.noise > 0.05
    assert outcome(loud) == "within noise"


def test_what_all_computing_gains_counts_only_where_it_is_blamed():
    """Its cut is of several stages, and so gains as much as each of them at the least."""
    compute = replace(READ, kind="python")
    spec = replace(SPEC, costs=(compute, DECODE))
    one = judged({"read": 3.0}, spec=spec)
    assert list(one.cuts) == ["read", "decode", "worker-cpu"]
    gains = {**one.gains, one.cuts["worker-cpu"]: (1.21, 1.21, 1.21)}
    one = replace(one, gains=gains)
    assert outcome(one) == "most"
    assert one.outcome(Said({"worker-cpu": 1.0}, {})) == "most"


def test_a_cause_without_a_cost_is_refuted_by_what_the_others_gain():
    """Were all of a run 25 % cheaper, a quarter of its time would be saved; of that the two here
    save two thirds, and what is left is less than one of them does."""
    assert outcome(judged({"transfer": 3.0})) == "wrong"
    little = (1.02, 1.02, 1.02)
    assert outcome(judged({"transfer": 3.0}, read=little, decode=little)) == "cannot be cut"


def test_the_noise_is_what_the_turns_of_a_loader_differ_by():
    even, odd = (1.0, 1.1, 1.0, 1.1), (1.1, 1.0, 1.1, 1.0)
    assert standard_error([even]) == pytest.approx(standard_error([even, odd]))
    assert standard_error([even]) == pytest.approx(0.0275, rel=0.01)
    assert standard_error([even + even]) < 0.8 * standard_error([even])


def test_blaming_nothing_is_wrong():
    assert outcome(judged({})) == "wrong"


def test_a_profile_without_promises_is_held_to_none():
    one = judged({"read": 3.0})
    assert one.profiles[0].promise("read") is None
    assert one.held() == []


def test_promises_are_held_against_what_was_gained():
    promised = {"read": worth(0.14), "decode": worth(0.10)}
    held = judged({"read": 3.0, "decode": 1.0}, promised=promised).held()
    assert [(each.cause, each.first, each.holds) for each in held[:2]] == [
        ("read", True, True), ("decode", False, False),
    ]  # fmt: skip
    assert [each.error for each in held[:2]] == pytest.approx([-0.01, 0.05])
    assert len(held) == 2 * TURNS


def test_an_interval_is_held_against_its_own_turn_and_an_error_against_all():
    one = judged({"read": 3.0}, (1.10, 1.15, 1.20), promised={"read": worth(0.15, half=0.03)})
    of_read = [each for each in one.held() if each.cause == "read"]
    assert [each.holds for each in of_read] == [False, True, False]
    assert [each.error for each in of_read] == pytest.approx([0.0] * 3, abs=0.001)


def test_a_promise_is_compared_in_proportion_to_what_the_cut_made_of_its_cause():
    """A stage of which half is not the drawn cost becomes half as much cheaper as the cost."""
    # of a batch's time a sixth was to be saved, and half of that is a twelfth
    one = judged({"read": 3.0}, (12 / 11,) * 3, promised={"read": worth(0.20)})
    one = replace(one, realised={"read": 0.125})
    of_read = [each for each in one.held() if each.cause == "read"]
    assert [each.error for each in of_read] == pytest.approx([0.0] * 3, abs=0.001)
    assert [each.full_error for each in of_read] == pytest.approx([0.20 - 1 / 11] * 3, abs=0.001)
    assert all(each.holds for each in of_read)


def test_what_is_not_blamed_promises_nothing():
    one = judged({"read": 3.0}, promised={"read": worth(0.15)})
    decode = next(each for each in one.held() if each.cause == "decode")
    assert decode.error == pytest.approx(-0.05)
    assert decode.holds is None, "there is no interval to hold it"


def test_the_summary_says_which_bars_are_met(capsys):
    good = judged({"read": 3.0, "decode": 1.0},
                  promised={"read": worth(0.14), "decode": worth(0.05)})  # fmt: skip
    bad = judged({"transfer": 3.0, "decode": 1.0},
                 promised={"decode": worth(0.15), "read": worth(0.02)})  # fmt: skip
    print_summary([good])
    assert "bar 95 %: met" in capsys.readouterr().out
    print_summary([bad])
    said = capsys.readouterr().out
    assert said.count("MISSED") == 4
    assert "not cut: transfer is blamed in 3 profiles, for 75 % of the stall" in said


def test_figures_of_a_busy_machine_are_not_settled(capsys):
    one = judged({"read": 3.0})
    print_summary([replace(one, others=0.02)])
    assert "NOT SETTLED" not in capsys.readouterr().out
    print_summary([replace(one, others=0.6)])
    assert "NOT SETTLED: other processes had 60 % of the cores" in capsys.readouterr().out


def test_without_promises_the_summary_says_so(capsys):
    print_summary([judged({"read": 3.0})])
    assert "no promise: 9 of 9" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_a_loader_is_run_whole_and_cut_over_the_same_batches(tmp_path: Path):
    spec = replace(SPEC, costs=(replace(READ, piece_s=0.004),))
    tried = try_out(spec, turns=2, seconds=0.1, threshold=0.05)
    assert tried is not None
    for turn in tried.turns:
        assert set(turn.cuts) == {spec.costs}
        lengths = {len(run.batches.index) for run in (turn.base, *turn.cuts.values())}
        assert len(lengths) == 1
        assert rate(turn.base) > 0
    keep(tried, tmp_path / "kept")
    keep(Tried(spec, tried.turns[:1]), tmp_path / "kept")
    assert list(load([tmp_path / "kept"])) == [tried, Tried(spec, tried.turns[:1])]
    assert tried.others is not None
    one = Judged.of(tried)
    assert one.profiles[0].first is not None
    gains = [turn.gain(spec.costs) for turn in tried.turns]
    assert 1 + one.gain("read") == pytest.approx(prod(gains) ** (1 / len(gains)))
    longer = Judged.of(Tried(spec, tried.turns * 2))
    assert len(longer.profiles) == JUDGED
    assert len(longer.gains[spec.costs]) == 2 * len(tried.turns), "all tell what was gained"
    # a sleep of 4 ms is cut by a quarter, and the rest of its stage is little
    assert 0.15 < one.realised["read"] <= QUARTER


def test_a_loader_that_is_fed_is_not_tried():
    spec = replace(SPEC, costs=(replace(READ, piece_s=0.001),), step_s=0.015)
    assert try_out(spec, turns=1, seconds=0.1, threshold=0.5) is None
