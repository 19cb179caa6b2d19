"""Sweeps with realistic figures, for the tests of all packages. They try other settings, Parquet
and TFRecord for the CSV data set of `tests.samples`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeprof.model import (
    Conversion,
    ConversionSpec,
    Copy,
    Gain,
    Headspace,
    LoaderConfig,
    Multiple,
    PairedRuns,
    Recommendation,
    RunNoise,
    Sample,
    SweepAdvice,
    SweepResult,
    SweepSpec,
    Trial,
)
from tests.samples import BATCH_SIZE, CREATED, ENVIRONMENT


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
        against_first=Multiple(
            speed=SWEEP_TRIALS[5].samples_per_s / SWEEP_TRIALS[2].samples_per_s,
            interval=(1.62, 1.71),
            difference="faster",
            cpu=0.21,
        ),
    ),
)


def sample_sweep(**changes: Any) -> SweepResult:
    """Return a sweep of two data sets with four settings each; ``changes`` replace fields of
    `SweepResult`."""
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
        noise={
            "/data/clicks-csv": RunNoise(1, 30_400, 29_700, 0.012, 5, 0.044, 0.0296, False, 21.5),
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
    """Return a sweep of a CSV data set that is also tried as Parquet and TFRecord, on two
    storages."""
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
        plain, noise={}, trials=_CONVERSION_TRIALS, planned=len(_CONVERSION_TRIALS),
        conversion=conversion,
        advice=(replace(plain.advice[0], best_trial=0, recommendation=None),),
        spec=replace(
            plain.spec, urls=("/data/clicks-csv",), workers=(2,), prefetch=(2,),
            conversion=ConversionSpec(("parquet:zstd", "tfrecord"), _STORAGES, 256_000_000),
        ),
    )  # fmt: skip
    return replace(found, **changes)
