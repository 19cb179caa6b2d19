"""Build profiles with a known difference, and comparisons of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.analyze.compare.runs import two_runs
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.model import (
    BatchLog,
    Change,
    Compared,
    Comparison,
    Difference,
    LoaderConfig,
    Profile,
    Speed,
    Throughput,
    TwoRuns,
)
from tests.samples import ACCELERATOR, sample_profile
from tests.stage_samples import stage_stats

STEP_S = 0.010
WARMUP = 2


def drawn(
    seed: int,
    read_ms: float = 6.0,
    decode_ms: float = 12.0,
    batches: int = 400,
    batch_size: int = 32,
    correlation: float = 0.7,
    **changes: Any,
) -> Profile:
    """Return the profile of one worker that reads and decodes one batch after another.

    A step takes 10 ms, so main waits for each batch, and a cycle takes as long as fetching a batch.
    That time varies: ``correlation`` is how similar each batch is to the previous one.
    """
    random = np.random.default_rng(seed)
    read = read_ms / 1e3 * _varying(random, batches, correlation)
    decode = decode_ms / 1e3 * _varying(random, batches, correlation)
    return replace(_profile_of(read, decode, batch_size), **changes)


def paced(cycles_s: npt.NDArray[np.float64], **changes: Any) -> Profile:
    """Return a profile like `drawn` whose cycles take ``cycles_s``, each longer than a step."""
    return replace(_profile_of(cycles_s / 3, 2 * cycles_s / 3, batch_size=32), **changes)


def _profile_of(
    read: npt.NDArray[np.float64], decode: npt.NDArray[np.float64], batch_size: int
) -> Profile:
    batches = len(read)
    fetched = 100.0 + np.cumsum(read + decode)
    asked, delivered = _delivered(fetched)
    none = np.zeros(batches)
    columns = {
        "index": np.arange(batches), "epoch": none.astype(int), "nth": np.arange(batches),
        "epoch_batches": np.full(batches, batches), "worker": none.astype(int),
        "samples": np.full(batches, batch_size), "asked_s": asked, "delivered_s": delivered,
        "done_s": delivered + STEP_S, "fetch_start_s": fetched - read - decode,
        "fetch_end_s": fetched, "sent_s": fetched, "received_s": np.maximum(asked, fetched),
        "arrived_s": delivered,
        "read_s": read, "decode_s": decode, "transform_s": none, "collate_s": none,
    }  # fmt: skip
    log = BatchLog(**{name: tuple(column.tolist()) for name, column in columns.items()})
    return _measured(log, batch_size)


def _varying(
    random: np.random.Generator, count: int, correlation: float
) -> npt.NDArray[np.float64]:
    """Return correlated random factors of at least 0.5, with a long-term mean of 1. Shape:
    [count]."""
    values, at = np.empty(count), 1.0
    for place, drawn in enumerate(random.exponential(1.0, count)):
        at = values[place] = correlation * at + (1 - correlation) * drawn
    return 0.5 + 0.5 * values


def _delivered(fetched: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the moments at which each batch was requested and delivered."""
    asked, delivered = np.empty(len(fetched)), np.empty(len(fetched))
    now = 100.0
    for place, at in enumerate(fetched):
        asked[place], delivered[place] = now, max(now, at)
        now = delivered[place] + STEP_S
    return asked, delivered


def _measured(log: BatchLog, batch_size: int) -> Profile:
    """Assemble a profile as `pipeprof.analyze.assemble.assemble` does, without findings and
    advice."""
    summary = Summary(WARMUP)
    summary.add(Columns.of(log))
    wall_s, stall_s = summary.sums["wall_s"], summary.sums["stall_s"]
    cycles = summary.series["cycle_s"]
    rates = (summary.sums["samples"] / wall_s, summary.measured / wall_s)
    plain = sample_profile()
    diagnosis = replace(
        plain.diagnosis,
        starved_fraction=stall_s / wall_s,
        starved_interval=ratio_interval(summary.series["stall_s"], cycles),
    )
    return replace(
        plain,
        config=LoaderConfig(1, prefetch_factor=2, batch_size=batch_size, start_method="fork"),
        wall_s=wall_s,
        stall_s=stall_s,
        warmup_batches=summary.total - summary.measured,
        measured_batches=summary.measured,
        throughput=Throughput(*rates, 0.0, ratio_interval(summary.series["samples"], cycles)),
        stages=summary.stage_stats(),
        diagnosis=diagnosis,
        blame=summary.charges.ranked_blame(),
        batches=log,
        resources={"cpu": stage_stats(1.0), "blocked": stage_stats(17.0)},
    )


def compared(*profiles: Profile) -> Comparison:
    """Compare each profile with the first."""
    first, *later = profiles
    return Comparison(
        tuple(
            two_runs(first, each, ("runs/0.json", f"runs/{place}.json"))
            for place, each in enumerate(later, 1)
        )
    )


_BEFORE = Compared(
    file="runs/main.json", name="train.py:42", created="2025-11-20T09:30:00+00:00",
    pipeprof="0.1.0", accelerator=ACCELERATOR, samples_per_s=60_235.0,
    samples_interval=(57_900.0, 62_600.0), starved_fraction=0.412, verdict="starved",
    bottleneck="read", measured_batches=1800, kept_batches=1800,
)  # fmt: skip
_AFTER = replace(
    _BEFORE, file="runs/branch.json", created="2025-11-21T09:30:00+00:00", samples_per_s=49_390.0,
    samples_interval=(48_100.0, 50_700.0), starved_fraction=0.518, bottleneck="decode",
    measured_batches=12_000, kept_batches=2000,
)  # fmt: skip
_SLOWER = TwoRuns(
    before=_BEFORE,
    after=_AFTER,
    headline=(
        "Slower: 0.82× the samples/s (95 %: 0.76–0.88), 49,390 instead of 60,235; starved 51.8 % "
        "of the time instead of 41.2 %; decode takes 7.10 ms more a batch."
    ),
    speed=Speed(0.82, (0.76, 0.88), "slower"),
    starved=Difference(0.412, 0.518, 0.106, (0.061, 0.151), "more"),
    stall=Difference(0.0070, 0.0107, 0.0037, (0.0022, 0.0052), "more"),
    stages={
        "read": Difference(0.0021, 0.0020, -0.0001, (-0.0016, 0.0014), "none"),
        "decode": Difference(0.0284, 0.0355, 0.0071, (0.0049, 0.0093), "more"),
        "fetch": Difference(0.0326, 0.0396, 0.0070, (0.0047, 0.0093), "more"),
        "collate": Difference(0.0006, 0.0006, 0.0, (-0.0015, 0.0015), "none"),
        "ready": Difference(0.0041, 0.0001, -0.0040, (-0.0062, -0.0018), "less"),
        "wait": Difference(0.0070, 0.0107, 0.0037, (0.0015, 0.0059), "more"),
        "pin": Difference(None, 0.0002),
    },
    per="batch",
    changes=(
        Change("loader", "prefetch_factor", 2, 4),
        Change("loader", "pin_memory", False, True),
        Change("data", "bytes", 1_073_000_000, 2_146_000_000),
        Change("machine", "torch", "2.13.0", None),
        Change("verdict", "threshold", 0.05, 0.1),
    ),
    unlike=("other data", "verdicts by thresholds of 5.0 % and 10.0 %"),
    between_runs=0.06,
)
_EQUAL = replace(
    _SLOWER,
    after=replace(_BEFORE, file="runs/main-again.json"),
    headline=(
        "No difference that this data can show: 1.01× the samples/s (95 %: 0.95–1.07), 60,640 "
        "instead of 60,235."
    ),
    speed=Speed(1.01, (0.95, 1.07), "none"),
    starved=Difference(0.412, 0.410, -0.002, (-0.047, 0.043), "none"),
    stall=Difference(0.0070, 0.0070, 0.0, (-0.0015, 0.0015), "none"),
    stages={
        "decode": Difference(0.0284, 0.0286, 0.0002, (-0.0020, 0.0024), "none"),
        "fetch": Difference(0.0326, 0.0327, 0.0001, (-0.0022, 0.0024), "none"),
    },
    changes=(),
    unlike=(),
)


def sample_comparison() -> Comparison:
    """Return a comparison with a slower run on other data, in which decoding takes 25 % longer."""
    return Comparison((_SLOWER,))


def three_runs() -> Comparison:
    """Return a comparison of three runs: the second as in `sample_comparison`, the third equal to
    the first."""
    return Comparison((_SLOWER, _EQUAL), notes=("one data set was left out",))
