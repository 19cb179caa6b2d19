"""What a storage had saved up is not its rate: made-up runs whose rate is known."""

import numpy as np
import pytest

from pipeprof.analyze.predict.burst_trim import trim_burst
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns


def run_of(cycle_s, workers=2):
    """Batches that come so far apart."""
    delivered_s = np.cumsum(cycle_s)
    return Measured(
        Setting(workers),
        Columns({
            "index": np.arange(len(cycle_s), dtype=float),
            "asked_s": delivered_s - cycle_s,
            "delivered_s": delivered_s,
            "done_s": delivered_s,
        }),
    )  # fmt: skip


def jittered(mean_s, count, seed=0):
    return mean_s * np.random.default_rng(seed).uniform(0.5, 1.5, count)


def test_a_disk_that_had_a_rest_gives_more_at_first():
    run = run_of(np.concatenate([jittered(0.006, 16), jittered(0.013, 60)]))
    rest = trim_burst(run, fewest=20)
    assert len(run.columns) - len(rest.columns) in (12, 16, 20)
    assert rest.batches_per_s == pytest.approx(1 / 0.013, rel=0.1)


@pytest.mark.parametrize("seed", range(20))
def test_jitter_is_left_as_it_is(seed):
    run = run_of(jittered(0.013, 60, seed))
    assert trim_burst(run, fewest=20) is run


def test_pairs_of_batches_that_come_at_once_are_no_burst():
    run = run_of(np.tile([0.001, 0.025], 30))
    assert trim_burst(run, fewest=20) is run


def test_a_run_gets_slower_by_a_fifth_without_a_storage():
    run = run_of(np.concatenate([jittered(0.010, 30), jittered(0.012, 30)]))
    assert trim_burst(run, fewest=20) is run


def test_a_run_that_is_too_short_to_be_cut_is_left_whole():
    run = run_of(np.concatenate([jittered(0.006, 12), jittered(0.013, 16)]))
    assert trim_burst(run, fewest=20) is run
