"""What several ranks measured and wanted becomes one decision."""

from __future__ import annotations

from pipeprof.loaders.tune.agreement import Terms, agreed_terms, first_error, of_rank, slowest
from pipeprof.loaders.tune.search import Candidate, MeasuredStretch
from pipeprof.model import TunedSetting

ONE, TWO = TunedSetting(1, 2), TunedSetting(2, 2)


def terms(loader: str = "images", first: TunedSetting = ONE, cores: int = 8) -> Terms:
    return Terms(loader, first, 100, cores, f"node-{cores}")


def waited(share: float) -> MeasuredStretch:
    return MeasuredStretch(ONE, 100, 10.0, 10.0 * share)


def test_the_rank_that_waits_longest_decides() -> None:
    assert slowest([waited(0.1), waited(0.7), waited(0.2)]) == (1, waited(0.7))


def test_a_setting_that_fails_in_one_rank_fails_in_all() -> None:
    failed = MeasuredStretch(ONE, 0, 0.0, 0.0, error="a worker died")
    assert slowest([waited(0.1), failed, waited(0.9)]) == (1, failed)
    assert first_error([None, "a worker died", "no memory"]) == "a worker died"


def test_the_candidates_are_those_of_one_rank() -> None:
    assert of_rank(1, [[], [Candidate(TWO)]]) == [Candidate(TWO)]


def test_all_begin_with_the_setting_of_rank_0() -> None:
    agreed = agreed_terms([terms(first=TWO), terms(), terms()])
    assert (agreed.first, agreed.epoch_batches) == (TWO, 100)
    assert agreed.notes == ("decided by the slowest of 3 ranks",)


def test_one_process_has_nothing_to_say_of_ranks() -> None:
    assert agreed_terms([terms()]).notes == ()


def test_nodes_that_differ_are_reported() -> None:
    notes = agreed_terms([terms(), terms(cores=4)]).notes
    assert "node-4 has 4 cores, node-8 has 8; both get the same" in notes


def test_ranks_with_other_loaders_are_not_tuned() -> None:
    agreed = agreed_terms([terms(), terms("words")])
    assert agreed.refused
    assert agreed.notes == ("ranks 0 and 1 have other loaders: images; words",)
