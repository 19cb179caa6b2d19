"""From recordings whose answer is known to profiles: every figure is compared with the truth."""

from dataclasses import replace

import pytest

from pipeprof.analyze.assemble import KEPT_BATCHES, assemble
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.recorder import Recorder
from pipeprof.model import LoaderConfig
from tests.analyze.pipelines import inline_run, recording_of, workers_run


def test_without_workers_every_stage_is_what_it_took():
    profile = assemble(inline_run())
    means = {name: stats.mean_s for name, stats in profile.stages.items()}
    assert means == pytest.approx(
        {"read": 0.004, "decode": 0.008, "fetch": 0.013, "collate": 0.002, "wait": 0.015,
         "step": 0.010}
    )  # fmt: skip
    assert profile.stages["read"].bytes == 49 * 1000
    assert profile.stages["read"].requests == 49 * 2
    assert (profile.measured_batches, profile.warmup_batches) == (49, 1)
    assert profile.wall_s == pytest.approx(49 * 0.025)


def test_without_workers_blame_is_the_way_of_the_batch_and_adds_up():
    profile = assemble(inline_run())
    per_batch = {name: seconds / 49 for name, seconds in profile.blame.items()}
    assert per_batch == pytest.approx(
        {"decode": 0.008, "read": 0.004, "collate": 0.002, "fetch": 0.001}
    )
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s, rel=1e-12)
    assert next(iter(profile.blame)) == "decode"


def test_the_verdict_says_how_much_and_by_what():
    diagnosis = assemble(inline_run()).diagnosis
    assert diagnosis.verdict == "starved"
    assert diagnosis.starved_fraction == pytest.approx(0.6)
    assert diagnosis.starved_interval == pytest.approx((0.6, 0.6))
    assert diagnosis.accelerator_utilisation == pytest.approx(0.4)
    assert diagnosis.bottleneck == "decode"
    assert diagnosis.headline == (
        "Starved: the accelerator waited for batches 60.0 % of the time "
        "(95 %: 60.0–60.0 %); 53 % of that wait was decode."
    )


def test_a_quick_loader_feeds():
    profile = assemble(inline_run(read_s=1e-4, decode_s=1e-4, collate_s=0, other_s=0))
    assert profile.diagnosis.verdict == "fed"
    assert profile.diagnosis.bottleneck == "accelerator"
    assert profile.recommendations == ()


def test_near_the_threshold_it_does_not_pretend_to_know():
    # 5 % on average, in slow swings between 0.3 % and 9.7 %
    recording = inline_run(20, 0.0005, 0.00002, 0, 0, step_s=0.010, jitter=0.95)
    diagnosis = assemble(recording).diagnosis
    low, high = diagnosis.starved_interval
    assert low < diagnosis.threshold < high
    assert diagnosis.verdict == "inconclusive"
    assert diagnosis.more_batches >= 10
    assert "spans the 5.0 % threshold" in diagnosis.headline


def test_ten_batches_are_needed_for_a_verdict():
    assert assemble(inline_run(10)).diagnosis.verdict == "inconclusive"
    assert assemble(inline_run(11)).diagnosis.verdict == "starved"


def test_workers_that_are_too_slow_starve_and_the_ceiling_says_at_which_rate():
    profile = assemble(workers_run())
    # two workers make a batch of 4 every 15 ms; the step takes 5 ms of them
    assert profile.throughput.samples_per_s == pytest.approx(4 / 0.015)
    assert profile.throughput.interval == pytest.approx((4 / 0.015, 4 / 0.015))
    assert profile.diagnosis.starved_fraction == pytest.approx(10 / 15)
    assert profile.ceilings["workers"].samples_per_s == pytest.approx(2 * 4 / 0.030)
    assert profile.ceilings["worker-cpu"].samples_per_s == pytest.approx(2 * 4 / 0.006)
    assert profile.ceilings["accelerator"].samples_per_s == pytest.approx(4 / 0.005)
    assert list(profile.ceilings) == ["workers", "accelerator", "worker-cpu", "transfer"]


def test_blame_of_a_worker_is_what_the_awaited_batch_did_meanwhile():
    profile = assemble(workers_run())
    # of the 30 ms of a batch the loop waits for the last 9: the end of decode (which ends at
    # 22.5), the rest of fetch; then 1 ms of transfer, in which the worker that is waited for next
    # decodes and reads
    per_batch = {name: seconds / 56 for name, seconds in profile.blame.items()}
    last = per_batch.pop("transfer")
    assert last == pytest.approx(0.001 / 56), "after which no other is waited for"
    expected = {"fetch": 0.0075, "decode": 0.002, "read": 0.0005 - last}
    assert per_batch == pytest.approx(expected)
    assert profile.stages["transfer"].mean_s == pytest.approx(0.001)
    assert profile.stages["ready"].mean_s == 0


def test_slack_is_ready_and_not_transfer():
    profile = assemble(workers_run(step_s=0.050))
    assert profile.diagnosis.verdict == "fed"
    assert profile.stages["pipe"].mean_s == pytest.approx(0.0, abs=1e-9), "it lay in the pipe"
    assert profile.stages["serialise"].mean_s == pytest.approx(0.0005)
    assert profile.stages["unpickle"].mean_s == pytest.approx(0.00025)
    assert profile.stages["ready"].mean_s > 0.1
    assert profile.stages["ready"].source == "measured"


def test_each_worker_has_its_stages():
    workers = assemble(workers_run()).workers
    assert [worker.index for worker in workers] == [0, 1]
    assert [worker.batches for worker in workers] == [28, 28]
    assert set(workers[0].stages) == {
        "read", "decode", "fetch", "collate", "transfer", "serialise", "pipe", "unpickle"
    }  # fmt: skip


def test_more_workers_are_proposed_with_the_rate_to_expect():
    (advice,) = assemble(workers_run()).recommendations
    assert (advice.setting, advice.current, advice.proposed) == ("num_workers", "2", "7")
    # a turn of the loop: 5 ms of training, 0.25 ms of receiving the batch
    assert advice.predicted_samples_per_s == pytest.approx(4 / 0.00525, rel=0.1)
    assert "num_workers=7" in advice.code
    assert "not tried" in advice.why


def test_more_workers_are_not_proposed_when_the_cores_are_used_up():
    (advice,) = assemble(workers_run(cpu_share=1.0)).recommendations
    assert advice.setting != "num_workers"
    assert "with any number of workers" in advice.why


def test_batches_whose_record_was_lost_are_charged_to_unknown():
    recording = workers_run()
    log = recording.batches
    unseen = ("fetch_start_s", "fetch_end_s", "sent_s", "received_s", "arrived_s", "read_s",
              "decode_s", "transform_s", "collate_s", "cpu_s")  # fmt: skip
    blind = replace(log, **dict.fromkeys(unseen, ()))
    profile = assemble(replace(recording, batches=blind, lost_records=60))
    assert profile.blame == {"unknown": pytest.approx(profile.stall_s)}
    assert profile.diagnosis.bottleneck is None
    assert set(profile.stages) == {"wait", "step"}
    assert [finding.code for finding in profile.findings] == ["lost-records"]
    assert profile.recommendations == ()


def test_a_run_without_batches_is_inconclusive():
    profile = assemble(recording_of(Recorder(FakeClock()), LoaderConfig(0), warmup=1))
    assert profile.diagnosis.verdict == "inconclusive"
    assert "no batch" in profile.diagnosis.headline
    assert profile.throughput.samples_per_s == 0
    assert profile.stages == {}


def test_one_batch_is_analysed_without_complaint():
    profile = assemble(inline_run(1))
    assert profile.diagnosis.verdict == "inconclusive"
    assert profile.measured_batches == 1


def test_the_saved_log_is_bounded():
    profile = assemble(inline_run(KEPT_BATCHES + 50))
    assert len(profile.batches.index) == KEPT_BATCHES
    assert profile.measured_batches == KEPT_BATCHES + 49


def test_fewer_cores_than_shown_is_found():
    recording = inline_run()
    small = replace(recording.environment, cores=2, cores_visible=64)
    codes = [finding.code for finding in assemble(replace(recording, environment=small)).findings]
    assert codes == ["fewer-cores-than-shown"]


def test_more_busy_workers_than_cores_is_found():
    codes = [finding.code for finding in assemble(workers_run(workers=4, cpu_share=0.5)).findings]
    assert codes == ["cpu-oversubscribed"]
    sleeping = assemble(workers_run(workers=4, cpu_share=0.05))
    assert sleeping.findings == (), "workers that sleep do not crowd the cores"
