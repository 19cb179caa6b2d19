"""Profiles and sweeps with realistic figures, for the tests of every room.

One story: a CSV data set, two workers, an emulated accelerator of 10 ms a step. A batch takes a
worker 34 ms, so two workers deliver one each 17 ms, and the accelerator waits 7 ms of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeprof.model import (
    BatchLog,
    CacheState,
    Ceiling,
    Conversion,
    ConversionSpec,
    Copy,
    Cost,
    DataSource,
    Diagnosis,
    Environment,
    Epoch,
    Finding,
    Gain,
    Headspace,
    LoaderConfig,
    Overhead,
    PairedRuns,
    Percentiles,
    Profile,
    QueueDepth,
    Recommendation,
    RequestFit,
    RequestStats,
    Sample,
    Source,
    StageStats,
    SweepAdvice,
    SweepResult,
    SweepSpec,
    Throughput,
    Trial,
    WorkerStats,
)

BATCHES = 1800
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
)


def stage_stats(
    mean_ms: float,
    count: int = BATCHES,
    bytes: int = 0,  # noqa: A002
    requests: int = 0,
    source: Source = "measured",
) -> StageStats:
    """A stage whose times have the tail that real ones have."""
    mean_s = mean_ms / 1e3
    return StageStats(
        count=count,
        mean_s=mean_s,
        p50_s=0.96 * mean_s,
        p95_s=1.4 * mean_s,
        p99_s=2.1 * mean_s,
        total_s=mean_s * count,
        bytes=bytes,
        requests=requests,
        source=source,
    )


def sample_stages(count: int = BATCHES) -> dict[str, StageStats]:
    batch_bytes = 190_000
    return {
        "read": stage_stats(2.1, count, bytes=count * batch_bytes, requests=count // 22),
        "decode": stage_stats(28.4, count),
        "transform": stage_stats(1.9, count),
        "fetch": stage_stats(32.6, count),
        "collate": stage_stats(0.6, count),
        "transfer": stage_stats(0.8, count),
        "serialise": stage_stats(0.4, count),
        "pipe": stage_stats(0.1, count),
        "unpickle": stage_stats(0.3, count),
        "reorder": stage_stats(0.2, count),
        "ready": stage_stats(0.1, count, source="estimated"),
        "wait": stage_stats(7.0, count),
        "step": stage_stats(10.0, count),
    }


def sample_workers(number: int = 2, slow: int | None = None) -> tuple[WorkerStats, ...]:
    """``number`` workers alike, but for ``slow``, which takes twice as long to fetch."""
    share = BATCHES // number
    return tuple(
        WorkerStats(
            index,
            batches=share,
            stages={
                "read": stage_stats(2.1, share),
                "decode": stage_stats(28.4 + 0.1 * index, share),
                "transform": stage_stats(1.9, share),
                "fetch": stage_stats((65.2 if index == slow else 32.6) + 0.1 * index, share),
                "collate": stage_stats(0.6, share),
            },
        )
        for index in range(number)
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


def sample_profile(**changes: Any) -> Profile:
    """A starved run; ``changes`` replace fields of `Profile`."""
    stall_s = 12.6
    profile = Profile(
        name="train.csv",
        created=CREATED,
        config=LoaderConfig(
            num_workers=2,
            prefetch_factor=2,
            batch_size=BATCH_SIZE,
            start_method="fork",
            kind="iterable",
        ),
        environment=ENVIRONMENT,
        source=DataSource("/data/clicks-csv", "csv", objects=3, bytes=1_073_000_000),
        cache=CacheState("warm", "99.8 % of the pages were in memory before the first read"),
        wall_s=30.6,
        warmup_batches=16,
        measured_batches=BATCHES,
        first_batch_s=0.41,
        throughput=Throughput(
            samples_per_s=60_235.0,
            batches_per_s=58.8,
            bytes_per_s=11_180_000.0,
            interval=(57_900.0, 62_600.0),
        ),
        stages=sample_stages(),
        missing={
            "pin": "pin_memory is off",
            "h2d": "no CUDA device: the accelerator is emulated",
        },
        workers=sample_workers(),
        stall_s=stall_s,
        blame={
            "decode": 10.4,
            "read": 0.77,
            "transform": 0.7,
            "transfer": 0.51,
            "collate": 0.22,
        },
        ceilings=_CEILINGS,
        diagnosis=_STARVED,
        recommendations=(RECOMMENDATION,),
        findings=(FINDING,),
        overhead=Overhead(0.004, 0.000031, "a loop of empty probes, timed on this machine"),
        resources=_RESOURCES,
        epochs=_EPOCHS,
        queue_depth=QueueDepth(mean=0.4, p5=0.0, empty_share=0.71, capacity=4),
        requests=sample_requests(),
        batches=_BATCHES,
    )
    return replace(profile, **changes)


def sample_requests(**changes: Any) -> RequestStats:
    stats = RequestStats(
        count=84,
        bytes=343_900_000,
        requests_per_s=2.75,
        in_flight=0.1,
        at_once=1.9,
        size=Percentiles(4_094_000.0, 4_194_000.0, 4_194_000.0, 4_194_000.0),
        latency_s=Percentiles(0.0371, 0.0362, 0.0514, 0.0623),
        first_byte_s=Percentiles(0.0121, 0.0117, 0.0204, 0.0310),
        retries=3,
        throttled=2,
        errors=0,
        lost=0,
        client_cpu_s=0.0031,
        client_share=0.16,
        core_wait_share=0.02,
        fit=RequestFit(0.0118, 163_000_000.0, 0.87, 0.32, (0.27, 0.38)),
        fit_missing="",
    )
    return replace(stats, **changes)


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
    """A healthy run: batches lie ready before they are asked for."""
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


def sample_trial(
    format: str = "csv",  # noqa: A002
    workers: int = 2,
    prefetch: int | None = 2,
    samples_per_s: float = 60_235.0,
    starved: float = 0.412,
    **changes: Any,
) -> Trial:
    verdict = "starved" if starved >= 0.06 else "fed" if starved <= 0.04 else "inconclusive"
    trial = Trial(
        url=f"/data/clicks-{format}",
        format=format,
        config=LoaderConfig(
            num_workers=workers,
            prefetch_factor=prefetch if workers else None,
            batch_size=BATCH_SIZE,
            start_method="fork" if workers else None,
            kind="iterable",
        ),
        profile="trial-000.json",
        samples_per_s=samples_per_s,
        interval=(0.98 * samples_per_s, 1.02 * samples_per_s),
        spread=0.06,
        starved_fraction=starved,
        starved_interval=(max(0.0, starved - 0.01), starved + 0.01),
        verdict=verdict,
        bottleneck="decode" if verdict == "starved" else None,
        bytes_per_sample={"csv": 186.0, "parquet": 41.5}.get(format, 231.0),
        demand_samples_per_s=102_400.0,
    )
    return replace(trial, **changes)


_RUN = (
    sample_trial("csv", 0, samples_per_s=23_700, starved=0.769),
    sample_trial("csv", 1, samples_per_s=30_400, starved=0.703),
    sample_trial("csv", 2),
    sample_trial("csv", 2, prefetch=4, samples_per_s=60_400, starved=0.410),
    sample_trial("parquet", 0, samples_per_s=74_600, starved=0.272),
    sample_trial("parquet", 1, samples_per_s=100_800, starved=0.014),
    sample_trial("parquet", 2, samples_per_s=101_300, starved=0.009),
    sample_trial("parquet", 2, prefetch=4, samples_per_s=101_400, starved=0.008),
)
SWEEP_TRIALS = tuple(
    replace(trial, profile=f"trial-{number:03d}.json") for number, trial in enumerate(_RUN)
)


def _sweep_advice(first: Trial, best: Trial) -> Recommendation:
    workers, prefetch = best.config.num_workers, best.config.prefetch_factor
    return Recommendation(
        setting="num_workers + prefetch_factor + batch_size",
        current=f"{first.config.num_workers} workers, batch {BATCH_SIZE}",
        proposed=f"{workers} worker{'s' * (workers != 1)}, prefetch {prefetch}, batch {BATCH_SIZE}",
        why=(
            f"measured: {best.samples_per_s:,.0f} against {first.samples_per_s:,.0f} samples/s, "
            f"starved {best.starved_fraction * 100:.1f} % "
            f"against {first.starved_fraction * 100:.1f} %"
        ),
        interval=best.interval,
        verified_samples_per_s=best.samples_per_s,
        code=(
            "import pipeprof\n"
            "from torch.utils.data import DataLoader\n"
            "\n"
            f"dataset = pipeprof.open_dataset({best.url!r}, batch_size={BATCH_SIZE})\n"
            f"loader = DataLoader(dataset, batch_size=None, num_workers={workers}, "
            f"prefetch_factor={prefetch}, persistent_workers=True)"
        ),
    )


_ADVICE = (
    SweepAdvice(
        url="/data/clicks-csv",
        format="csv",
        headline=(
            "Starved at every setting tried: at best, with 2 workers, prefetch 2, "
            "batch 1024, the accelerator waits 41.2 % (95 %: 40.2–42.2 %) of the time; "
            "decode is to blame."
        ),
        best_trial=2,
        recommendation=_sweep_advice(SWEEP_TRIALS[0], SWEEP_TRIALS[2]),
    ),
    SweepAdvice(
        url="/data/clicks-parquet",
        format="parquet",
        headline=(
            "Fed with 1 worker, prefetch 2, batch 1024: the accelerator waits 1.4 % "
            "(95 %: 0.4–2.4 %) of the time."
        ),
        best_trial=5,
        recommendation=_sweep_advice(SWEEP_TRIALS[4], SWEEP_TRIALS[5]),
    ),
)


def sample_sweep(**changes: Any) -> SweepResult:
    """Two data sets, four settings each; ``changes`` replace fields of `SweepResult`."""
    sweep = SweepResult(
        created=CREATED,
        spec=SweepSpec(
            urls=("/data/clicks-csv", "/data/clicks-parquet"),
            workers=(0, 1, 2),
            prefetch=(2, 4),
            batch_sizes=(BATCH_SIZE,),
            step_s=0.01,
            trial_s=5.0,
        ),
        environment=ENVIRONMENT,
        trials=SWEEP_TRIALS,
        planned=len(SWEEP_TRIALS),
        advice=_ADVICE,
        headspace={
            "/data/clicks-csv": Headspace(
                21_400, (21_100, 21_700), 25_500, (25_450, 25_550), 1.19, (1.17, 1.21), 214, 510, 8
            ),
        },
        paired={
            "/data/clicks-parquet": PairedRuns(
                5,
                7,
                ((100_700, 101_300), (101_200, 101_000), (100_500, 101_600), (101_100, 101_200)),
                0.996,
                (0.989, 1.003),
                "none",
            ),
        },
    )
    return replace(sweep, **changes)


def _copy(name: str, size: int, write_s: float, storage: str = "local", **more: Any) -> Copy:
    kind, _, compression = name.partition(",")[0].partition(":")
    folder = f"{storage}/pipeprof-out-5f1a" if storage != "local" else "/results/out-data"
    return Copy(
        url=f"{folder}/{name.replace(':', '-')}", name=name, storage=storage, format=kind,
        compression=compression or "none", rows=1_000_000, objects=8, bytes=size, write_s=write_s,
        **more,
    )  # fmt: skip


_STORAGES = ("local", "s3://training-scratch/tmp")
_COPIES = (
    _copy("parquet:zstd", 41_500_000, 1.4),
    _copy("tfrecord", 231_000_000, 12.0),
    _copy("parquet:zstd", 41_500_000, 2.9, _STORAGES[1]),
    replace(_copy("tfrecord", 0, 0.0, _STORAGES[1]), rows=0, objects=0,
            skipped="column 'price' is float64, which TFRecord cannot hold whole."),
)  # fmt: skip
_SAMPLE = Sample(
    rows=1_000_000, ram_bytes=256_000_000, share=0.173, parts=32, parts_in_all=185,
    storage_bytes=186_000_000,
)  # fmt: skip
_FIGURES: list[tuple[str, str, float, float, float | None, float, float]] = [
    ("/data/clicks-csv", "csv", 60_235, 186.0, 186.0, 31.0e-6, 27.7e-6),
    (_COPIES[0].url, "parquet", 101_300, 41.5, 41.5, 9.2e-6, 6.1e-6),
    (_COPIES[1].url, "tfrecord", 22_100, 231.0, 231.0, 88.0e-6, 80.4e-6),
    (_COPIES[2].url, "parquet", 64_000, 41.5, None, 12.4e-6, 6.2e-6),
    ("/data/clicks-csv", "csv", 59_800, 186.0, 186.0, 31.2e-6, 27.9e-6),
]
_CONVERSION_TRIALS = tuple(
    sample_trial(
        kind, samples_per_s=speed, starved=max(0.009, 1 - speed / 102_400), url=url,
        profile=f"trial-{number:03d}.json", bytes_per_sample=read,
        physical_bytes_per_sample=moved, cpu_s_per_sample=cpu, decode_s_per_sample=decode,
    )
    for number, (url, kind, speed, read, moved, cpu, decode) in enumerate(_FIGURES)
)  # fmt: skip
_GAINS = tuple(
    Gain(
        url=copy.url, trial=number, speed=speed, speed_interval=(0.97 * speed, 1.03 * speed),
        difference=difference, storage=copy.bytes / _SAMPLE.storage_bytes,
        read=copy.bytes / _SAMPLE.storage_bytes, cpu=cpu,
    )
    for copy, number, speed, difference, cpu in (
        (_COPIES[0], 1, 1.68, "faster", 0.30),
        (_COPIES[1], 2, 0.37, "slower", 2.84),
        (_COPIES[2], 3, 1.06, "faster", 0.40),
    )
)  # fmt: skip


def sample_conversion(**changes: Any) -> SweepResult:
    """A CSV data set tried as Parquet and TFRecord too, on two storages."""
    conversion = Conversion(
        copies=_COPIES, sample=_SAMPLE, baseline=0, control=4, gains=_GAINS,
        advice={
            storage: f"parquet:zstd gives {gain.speed:.2f}× the samples/s of csv as it is (95 %: "
            f"{gain.speed_interval[0]:.2f}× to {gain.speed_interval[1]:.2f}×), and takes 0.22× "
            f"the bytes on storage and {gain.cpu:.2f}× the CPU a sample."
            for storage, gain in zip(_STORAGES, (_GAINS[0], _GAINS[2]), strict=True)
        },
    )  # fmt: skip
    plain = sample_sweep()
    found = replace(
        plain, trials=_CONVERSION_TRIALS, planned=len(_CONVERSION_TRIALS), conversion=conversion,
        advice=(replace(plain.advice[0], best_trial=0, recommendation=None),),
        spec=replace(
            plain.spec, urls=("/data/clicks-csv",), workers=(2,), prefetch=(2,),
            conversion=ConversionSpec(("parquet:zstd", "tfrecord"), _STORAGES, 256_000_000),
        ),
    )  # fmt: skip
    return replace(found, **changes)
