"""Predictions against real runs: of loaders that sleep or compute, of a disk and a link of known
speed."""

import os
from collections.abc import Sequence

import pytest

from benchmarks.prediction_lab import DISK_BYTES_PER_S, LINK_MBIT_PER_S
from benchmarks.prediction_pipelines import BATCH_SIZE
from benchmarks.prediction_runs import Job, calibration_jobs, measure, place, run
from pipeprof.analyze.predict.calibrate import Measured, calibrate
from pipeprof.analyze.predict.predict import predict

pytestmark = pytest.mark.lab

LIMITS = {
    "throttled disk": DISK_BYTES_PER_S / (BATCH_SIZE * 32 * 1024),
    "shaped link": LINK_MBIT_PER_S * 1e6 / 8 * 1448 / 1514 / (BATCH_SIZE * 16 * 1024),
}
"""Batches a second, whatever the workers."""
PLACES = ["throttled disk", pytest.param("shaped link", marks=pytest.mark.link)]
STEADY = 0.07
"""Most by which runs of the same setting may differ a few seconds later."""
Runs = list[Measured]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("name", PLACES)
def test_four_workers_get_what_the_disk_or_the_link_gives_and_no_more(name):
    with place(name):
        found = measure(Job(name, 4, 2, 0.0, 1), 1.5)
    assert found.batches_per_s == pytest.approx(LIMITS[name], rel=0.1)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("name", ["sleeping", "computing", "mixed", *PLACES])
def test_settings_that_were_not_run_are_predicted_within_15_percent(name, record_truth):
    """From runs of 0, 1 and 2 workers; the runs that are predicted draw other samples."""
    others = [Job(name, workers, prefetch, 0.004, 1) for workers, prefetch in ((1, 4), (4, 2))]
    with place(name):
        runs, measured = while_steady(calibration_jobs(name, 0.004, 1), others)
    found = calibrate(runs, len(os.sched_getaffinity(0)))
    for job, real in zip(others, measured, strict=True):
        said = predict(found, job.setting, real.columns.step_s, batches=len(real.columns))
        record_truth(
            f"predicted, {name}, {job.num_workers} workers",
            f"{real.batches_per_s:.1f}/s",
            f"{said.batches_per_s:.1f}/s",
        )
        assert said.batches_per_s == pytest.approx(real.batches_per_s, rel=0.15)


def while_steady(known: Sequence[Job], others: Sequence[Job]) -> tuple[Runs, Runs]:
    """Measure all these jobs while the machine gives the same: the ``others``, and the last of
    ``known``, are run again at the end, as a control."""
    moved = []
    for _ in range(6):
        runs = [measure(job, 1.5) for job in (*known, *others, known[-1], *others)]
        first, again = runs[len(known) - 1 :][: len(others) + 1], runs[-len(others) - 1 :]
        pairs = zip(again, first, strict=True)
        moved.append(max(abs(one.batches_per_s / other.batches_per_s - 1) for one, other in pairs))
        if moved[-1] < STEADY:
            return runs[: len(known)], first[1:]
    pytest.skip(
        f"the same settings, run twice, differed by {', '.join(map('{:.0%}'.format, moved))}"
    )


def test_of_a_full_disk_the_report_says_how_much_faster_it_would_have_to_be():
    """It gives 20 MB/s; an accelerator that takes 8 samples of 32 KiB each 4 ms wants three times
    that."""
    with place("throttled disk"):
        profile = run(Job("throttled disk", 2, 2, 0.004, 1), 3.0).profile()
    found = {each.setting: each for each in profile.recommendations}
    assert "storage bandwidth" in found, (profile.recommendations, profile.blame)
    advice = found["storage bandwidth"]
    value, unit = advice.current.split()
    assert unit == "MB/s"
    assert float(value) * 1e6 == pytest.approx(DISK_BYTES_PER_S, rel=0.15)
    step_s = profile.stages["step"].mean_s
    wanted, unit = advice.proposed.split()[:2]
    assert unit == "MB/s"
    assert float(wanted) * 1e6 == pytest.approx(0.95 * BATCH_SIZE * 32 * 1024 / step_s, rel=0.02)
