"""Profiles with realistic figures, for the tests of all packages.

They describe one run: a CSV data set, two workers, and an emulated accelerator of 10 ms per step. A
batch takes a worker 34 ms. So two workers deliver one batch each 17 ms, and the accelerator waits
7 ms of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeprof.model import (
    AsSteps,
    BatchLog,
    CacheState,
    Ceiling,
    Cost,
    DataSource,
    Diagnosis,
    Environment,
    Epoch,
    Finding,
    LoaderConfig,
    Overhead,
    PauseKind,
    Pauses,
    PauseStats,
    PipelineStage,
    Profile,
    QueueDepth,
    Recommendation,
    Speedup,
    Throughput,
    Worth,
)
from tests.request_samples import sample_requests
from tests.stage_samples import BATCHES, sample_stages, sample_workers, stage_stats

BATCH_SIZE = 1024
CREATED = "2025-11-20T09:30:00+00:00"
ACCELERATOR = "emulated: a sleep of 10.0 ms a step"

ENVIRONMENT = Environment(
    pipeprof="0.1.0",
    python="3.11.7",
    torch="2.13.0",
    platform="Linux 6.18 x86_64",
    cores=2,
    cores_visible=16,
    ram_bytes=16_800_000_000,
    accelerator=ACCELERATOR,
    readers={"pyarrow": "26.0.1"},
)


RECOMMENDATION = Recommendation(
    setting="num_workers",
    current="2",
    proposed="4",
    why="Each batch keeps a worker busy for 33.2 ms; at 10.0 ms a step that takes 4 workers.",
    predicted_samples_per_s=99_800.0,
    interval=(92_300.0, 102_000.0),
    code=(
        "loader = torch.utils.data.DataLoader(\n"
        "    dataset,\n"
        "    batch_size=None,\n"
        "    num_workers=4,\n"
        "    prefetch_factor=2,\n"
        ")"
    ),
    predicted_starved=0.025,
    predicted_starved_interval=(0.004, 0.061),
    cost=Cost(cores=1.2, ram_bytes=212_000_000.0, shared_memory_bytes=9_800_000.0),
)

FINDING = Finding(
    code="few-splits",
    title="Fewer splits than four workers can share",
    evidence="3 splits for 2 workers: one worker reads 2, the other 1.",
    fix="Generate the data set with --shards 8, or set split_bytes to 16 MiB.",
)
_CEILINGS = {
    "workers": Ceiling(61_700.0, "2 × 1,024 samples / 33.2 ms to make a batch"),
    "worker-cpu": Ceiling(63_000.0, "2 cores × 1,024 samples / 32.5 ms of CPU a batch"),
    "storage-bandwidth": Ceiling(975_000.0, "181 MB/s while reading / 186 B a sample", "estimated"),
    "accelerator": Ceiling(102_400.0, "1,024 samples / 10.0 ms a step"),
}
_STARVED = Diagnosis(
    verdict="starved",
    starved_fraction=0.412,
    starved_interval=(0.389, 0.436),
    threshold=0.05,
    bottleneck="decode",
    headline=(
        "Starved: the accelerator waited for batches 41.2 % of the time "
        "(95 %: 38.9–43.6 %); 83 % of that wait was decode."
    ),
    accelerator_utilisation=0.588,
)
_RESOURCES = {
    "cpu": stage_stats(25.1, 600),
    "system": stage_stats(2.2, 600),
    "run-queue": stage_stats(6.0, 600),
    "blocked": stage_stats(2.1, 600),
    "native-threads": stage_stats(0.3, 600),
}
_EPOCHS = (
    Epoch(0, 99.0, 908, 16.0, iterator_s=0.12, first_batch_s=0.41, closing_s=0.05),
    Epoch(1, 115.0, 908, 15.5, iterator_s=0.11, first_batch_s=0.24, closing_s=0.05),
)
_BATCHES = BatchLog(
    index=(16, 17),
    epoch=(0, 0),
    worker=(0, 1),
    samples=(BATCH_SIZE, BATCH_SIZE),
    asked_s=(100.0, 100.017),
    delivered_s=(100.007, 100.024),
    done_s=(100.017, 100.034),
    arrived_s=(100.0069, 100.0239),
    fetch_start_s=(99.973, 99.99),
    fetch_end_s=(100.0062, 100.0232),
    read_s=(0.0021, 0.0021),
    decode_s=(0.0284, 0.0284),
    transform_s=(0.0019, 0.0019),
    collate_s=(0.0006, 0.0006),
    cpu_s=(0.0325, 0.0325),
    bytes=(190_000.0, 190_000.0),
    requests=(1.0, 0.0),
)
_VAL = PauseKind("val.csv", "loader")
_PAUSES = Pauses(
    count=2,
    total_s=4.6,
    longest_s=2.4,
    share=0.129,
    rested_batches=8,
    kinds=(PauseStats(_VAL, 2, 4.6, 2.4),),
    as_steps=AsSteps("starved", 0.354, (0.302, 0.41)),
)


_CONFIG = LoaderConfig(
    num_workers=2, prefetch_factor=2, batch_size=BATCH_SIZE, start_method="fork", kind="iterable"
)
_THROUGHPUT = Throughput(
    samples_per_s=60_235.0,
    batches_per_s=58.8,
    bytes_per_s=11_180_000.0,
    interval=(57_900.0, 62_600.0),
)
_WORTH = {
    "decode": Worth(Speedup(0.31, (0.25, 0.36)), Speedup(0.69, (0.6, 0.78))),
    "read": Worth(Speedup(0.01, (-0.01, 0.03)), Speedup(0.05, (0.03, 0.07))),
}


def sample_pipeline() -> tuple[PipelineStage, ...]:
    """Return the stages of a loader that works in threads, one of them by its library's figures."""
    return (
        PipelineStage(
            "read_rows", "spdl", "source", 800, None, 10.0, 1, ready_share=0.9,
            measured_by="library",
        ),
        PipelineStage("decode", "spdl", "pipe", 800, 19.2, 10.0, 2, 0.4, None, "threads", 4, 0.01),
        PipelineStage("pack", "spdl", "pipe", 100, 0.5, 10.0, 1, None, None, "threads", 4, 0.02),
    )  # fmt: skip


def sample_profile(**changes: Any) -> Profile:
    """Return a starved run; ``changes`` replace fields of `Profile`."""
    profile = Profile(
        name="train.csv",
        created=CREATED,
        config=_CONFIG,
        environment=ENVIRONMENT,
        source=DataSource("/data/clicks-csv", "csv", objects=3, bytes=1_073_000_000),
        cache=CacheState("warm", "99.8 % of the pages were in memory before the first read"),
        wall_s=30.6,
        warmup_batches=16,
        measured_batches=BATCHES,
        first_batch_s=0.41,
        throughput=_THROUGHPUT,
        stages=sample_stages(),
        missing={"pin": "pin_memory is off", "h2d": "no CUDA device: the accelerator is emulated"},
        workers=sample_workers(),
        stall_s=12.6,
        blame={"decode": 10.4, "read": 0.77, "transform": 0.7, "transfer": 0.51, "collate": 0.22},
        awaited_in={"transfer": 11.6, "decode": 0.51, "read": 0.49},
        worth=_WORTH,
        ceilings=_CEILINGS,
        diagnosis=_STARVED,
        recommendations=(RECOMMENDATION,),
        findings=(FINDING,),
        overhead=Overhead(0.004, 0.000031, "a loop of empty probes, timed on this machine"),
        resources=_RESOURCES,
        pauses=_PAUSES,
        epochs=_EPOCHS,
        queue_depth=QueueDepth(mean=0.4, p5=0.0, empty_share=0.71, capacity=4),
        requests=sample_requests(),
        batches=_BATCHES,
    )
    return replace(profile, **changes)


_FED = Diagnosis(
    verdict="fed",
    starved_fraction=0.005,
    starved_interval=(0.004, 0.006),
    threshold=0.05,
    bottleneck=None,
    headline=(
        "Fed: the accelerator waited for batches 0.5 % of the time "
        "(95 %: 0.4–0.6 %); loading is not the limit."
    ),
    accelerator_utilisation=0.995,
)


def fed_profile(**changes: Any) -> Profile:
    """Return a healthy run: batches are ready before they are requested."""
    stages = sample_stages() | {
        "decode": stage_stats(4.0),
        "fetch": stage_stats(8.2),
        "ready": stage_stats(9.7, source="estimated"),
        "wait": stage_stats(0.05),
    }
    healthy = sample_profile(
        stages=stages,
        wall_s=18.1,
        stall_s=0.09,
        blame={"transfer": 0.09},
        throughput=Throughput(101_900.0, 99.5, 18_900_000.0, (101_500.0, 102_200.0)),
        diagnosis=_FED,
        recommendations=(),
        findings=(),
    )
    return replace(healthy, **changes)
