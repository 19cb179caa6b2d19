"""Statistics of stages and workers with realistic figures, of the run of `tests.samples`."""

from __future__ import annotations

from pipeprof.model import Source, StageStats, WorkerStats

BATCHES = 1800


def stage_stats(
    mean_ms: float,
    count: int = BATCHES,
    bytes: int = 0,  # noqa: A002
    requests: int = 0,
    source: Source = "measured",
) -> StageStats:
    """Return the statistics of a stage with a realistic tail."""
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
        "pause": stage_stats(2300.0, 2),
    }


def sample_workers(number: int = 2, slow: int | None = None) -> tuple[WorkerStats, ...]:
    """Return ``number`` equal workers, except for ``slow``, which takes twice as long to fetch."""
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
