"""The content of the terminal report of a run, section by section."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pipeprof.model import Speedup, Worth
from tests.contracts.report_contract import unwrapped
from tests.report.full import full_text, section
from tests.samples import ENVIRONMENT, RECOMMENDATION, fed_profile, sample_profile
from tests.stage_samples import sample_workers


def test_shares_of_the_journey_count_nothing_twice() -> None:
    table = section(full_text(sample_profile()), "Where the time goes")
    shares = {
        line.split()[0]: float(share[1])
        for line in table.splitlines()
        if (share := re.search(r"([0-9.]+) %", line))
    }
    in_fetch, in_transfer = {"read", "decode", "transform"}, {"serialise", "pipe", "unpickle"}
    apart = [share for stage, share in shares.items() if stage not in in_fetch | in_transfer]
    assert sum(apart) == pytest.approx(100, abs=0.5)
    assert sum(shares[stage] for stage in in_fetch) <= shares["fetch"]
    assert sum(shares[stage] for stage in in_transfer) <= shares["transfer"] + 0.1
    assert "wait" not in shares


def test_without_worker_stages_no_shares_are_shown() -> None:
    stages = {name: sample_profile().stages[name] for name in ("wait", "step")}
    report = full_text(sample_profile(stages=stages, missing={"fetch": "not a DataLoader"}))
    table = section(report, "Where the time goes")
    assert "%" not in table
    assert "Shares" not in table
    assert "Not measured: fetch (not a DataLoader)." in table


def test_stages_stand_in_the_order_of_the_journey() -> None:
    table = section(full_text(sample_profile()), "Where the time goes").splitlines()[2:]
    names = [line.split()[0] for line in table[:13]]
    assert names == ["fetch", "read", "decode", "transform", "collate", "transfer", "serialise",
                     "pipe", "unpickle", "reorder", "ready", "wait", "step"]  # fmt: skip


def test_estimated_and_unknown_stages_are_marked() -> None:
    stages = dict(sample_profile().stages)
    stages["reorder"] = replace(stages["reorder"], source="unknown")
    table = section(full_text(sample_profile(stages=stages)), "Where the time goes")
    assert re.search(r"^  ready ~ .* 100 µs", table, re.MULTILINE)
    assert re.search(r"^  reorder +main +unknown +unknown +unknown +unknown$", table, re.MULTILINE)
    assert "~ estimated." in table


def test_bytes_and_requests_are_per_batch() -> None:
    table = section(full_text(sample_profile()), "Where the time goes")
    assert re.search(r"^    read .* 190 kB +0\.04$", table, re.MULTILINE)


def test_a_run_without_workers_happens_in_main() -> None:
    config = replace(sample_profile().config, num_workers=0, prefetch_factor=None)
    report = full_text(sample_profile(config=config, workers=sample_workers(1)))
    assert re.search(r"fetch +main ", section(report, "Where the time goes"))
    assert "no workers" in report
    assert "of 2 workers" not in report


def test_missing_stages_of_one_reason_share_a_line() -> None:
    missing = {"transfer": "no workers", "reorder": "no workers", "h2d": "no CUDA device"}
    report = full_text(sample_profile(missing=missing))
    assert (
        "Not measured: transfer, reorder (no workers).\n  Not measured: h2d (no CUDA device)."
    ) in report


def test_blame_is_sorted_and_sums_to_the_stall() -> None:
    part = section(full_text(sample_profile(blame={"read": 3.15, "decode": 9.45})), "What the acc")
    lines = part.splitlines()
    assert "12.6 s of 30.6 s" in lines[0]
    assert lines[2].split()[:4] == ["decode", "9.45", "s", "75.0"]
    assert lines[3].split()[:4] == ["read", "3.15", "s", "25.0"]
    assert lines[2].count("█") == 3 * lines[3].count("█") == 12


def test_the_worth_of_each_cause_is_shown() -> None:
    worth = {"decode": Worth(Speedup(0.18, (0.15, 0.21)), Speedup(1.5, (1.2, 1.8)))}
    page = full_text(sample_profile(blame={"read": 3.15, "decode": 9.45}, worth=worth))
    lines = section(page, "What the acc").splitlines()
    assert "+18 % (15–21)  +150 % (120–180)" in lines[2]
    assert "unknown" in lines[3]


def test_the_place_of_the_awaited_batch_is_shown_if_it_is_not_the_cause() -> None:
    elsewhere = sample_profile(blame={"decode": 12.6}, awaited_in={"transfer": 12.0, "decode": 0.6})
    assert "During the stall the awaited batch was in transfer 95.2 %" in full_text(elsewhere)
    there = sample_profile(blame={"decode": 12.6}, awaited_in={"decode": 12.6})
    assert "During the stall the awaited batch" not in full_text(there)


def test_without_a_stall_no_causes_are_listed() -> None:
    assert "waited for  " not in full_text(fed_profile(stall_s=0.0, blame={}))


def test_ceilings_are_measured_against_the_demand() -> None:
    part = section(full_text(sample_profile()), "Throughput ceilings").splitlines()[1:]
    by_name = {line.split()[0]: line for line in part[1:]}
    assert next(iter(by_name)) == "workers"
    assert "0.60×" in by_name["workers"]
    assert "1.00×" in by_name["accelerator"]
    assert by_name["workers"].count("█") < by_name["accelerator"].count("█") == 16
    assert by_name["storage-bandwidth"].count("█") == 16, "a bar never leaves its column"


def test_eight_workers_are_listed_and_more_are_summarised() -> None:
    listed = section(full_text(sample_profile(workers=sample_workers(8))), "Workers side")
    assert all(f"#{number} " in listed for number in range(8))
    many = section(full_text(sample_profile(workers=sample_workers(64, slow=41))), "Workers side")
    assert re.search(r"slowest #41 .* 6[0-9]\.[0-9] ms", many)
    assert "of 64 workers" in many
    assert "Worker #41 takes 1." in many


def test_no_worker_is_called_slow_if_all_are_alike() -> None:
    assert "as long as the median" not in full_text(sample_profile())


def test_a_recommendation_shows_its_gain_and_whether_it_is_measured() -> None:
    predicted = full_text(sample_profile())
    assert "num_workers: 2 → 4" in predicted
    assert "predicted 99,800 samples/s (92,300–102,000), +66 %" in predicted

    verified = replace(RECOMMENDATION, verified_samples_per_s=241_000.0)
    assert "measured 241,000 samples/s, 4.00×" in full_text(
        sample_profile(recommendations=(verified,))
    )
    unknown = replace(RECOMMENDATION, predicted_samples_per_s=None, interval=None)
    assert "not predicted" in full_text(sample_profile(recommendations=(unknown,)))


def test_an_inconclusive_run_says_how_much_longer_to_run() -> None:
    diagnosis = replace(sample_profile().diagnosis, verdict="inconclusive", more_batches=340)
    assert "run about 340 more batches" in full_text(sample_profile(diagnosis=diagnosis))


def test_confidence_shows_the_evidence_for_the_figures() -> None:
    part = section(full_text(sample_profile(notes=("3 records were lost",))), "Confidence")
    for words in (
        "1,800 batches in 30.6 s, 16 warm-up batches left out",
        "warm: 99.8 % of the pages",
        "emulated: a sleep of 10.0 ms a step",
        "0.4 % of the run, 31.0 µs a batch",
        "58.8 % (emulated)",
        "2 of 16 cores",
        "3 records were lost",
    ):
        assert words in part


def test_unknown_profiler_overhead_is_called_unknown() -> None:
    overhead = replace(sample_profile().overhead, share=None, method="not measured")
    assert "unknown (not measured)" in full_text(sample_profile(overhead=overhead))


def test_a_wait_for_a_core_is_reported_unless_negligible() -> None:
    report = unwrapped(full_text(sample_profile(core_wait_share=0.28)))
    assert "core wait the training loop could run, but had no core, in 28.0 % of the run" in report
    for little in (None, 0.0, 0.01):
        assert "core wait" not in full_text(sample_profile(core_wait_share=little))


def test_steal_time_is_reported_unless_negligible() -> None:
    report = unwrapped(full_text(sample_profile(stolen_share=0.042)))
    assert "steal time other machines on the same host took 4.2 % of the core time" in report
    for little in (None, 0.0, 0.01):
        assert "steal" not in full_text(sample_profile(stolen_share=little))


def test_a_machine_is_described_without_torch_and_known_memory() -> None:
    bare = replace(ENVIRONMENT, torch=None, ram_bytes=None, cores_visible=2, cores=2)
    report = full_text(sample_profile(environment=bare))
    assert "Linux 6.18 x86_64, 2 cores\n" in report
    assert "torch" not in section(report, "Confidence")


def test_settings_that_differ_from_a_plain_loader_are_named() -> None:
    config = replace(
        sample_profile().config,
        num_workers=1, pin_memory=True, persistent_workers=True, in_order=False,
    )  # fmt: skip
    assert (
        "1 worker, prefetch 2, batch 1024, fork, pinned memory, persistent workers, out of order"
        in unwrapped(full_text(sample_profile(config=config)))
    )
