"""Word figures and settings the same in every document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import expm1
from typing import Final, TypeVar

from pipeprof.model import (
    Cost,
    DataSource,
    Diagnosis,
    Environment,
    JobPlace,
    LoaderConfig,
    Recommendation,
    Trial,
    Untried,
)
from pipeprof.report.document.blocks import Tone, Verdict
from pipeprof.units import counted, format_bytes, format_count, format_share, percent

_T = TypeVar("_T")
_TONES: Final[dict[str, Tone]] = {
    "starved": "bad",
    "fed": "good",
    "inconclusive": "unsure",
    "slower": "bad",
    "faster": "good",
    "too little to tell": "unsure",
}
_MOST_LOG: Final = 20.0
"""The largest logarithm of a ratio that is shown, as no measured one is near it."""


def is_emulated(accelerator: str) -> bool:
    """Return whether the accelerator of this name is a sleep and not a device."""
    return "emulated" in accelerator.lower()


def emulated(environment: Environment) -> str:
    """Return the remark for a figure of an emulated accelerator; empty for a real one."""
    return " (emulated)" if is_emulated(environment.accelerator) else ""


def verdict_of(run: Diagnosis | Trial, headline: str, of: str = "") -> Verdict:
    """Return the verdict of a run. A loop without a training step says so instead."""
    return opening(run.verdict if run.has_step else "no training step", headline, of)


def opening(word: str, headline: str, of: str = "") -> Verdict:
    """Return a verdict with ``word`` split off from ``headline``, or put before it."""
    sentence = headline[len(word) :] if headline.lower().startswith(word) else f": {headline}"
    joint = ": " if sentence.startswith(": ") else " "
    return Verdict(word, sentence.removeprefix(joint), _TONES.get(word, ""), of, joint)


def or_unknown(value: _T | None, write: Callable[[_T], str]) -> str:
    """Format ``value`` by ``write``; ``None`` becomes "unknown"."""
    return write(value) if value is not None else "unknown"


def share_range(interval: tuple[float, float]) -> str:
    """Format an interval of shares: ``"38.9–43.6 %"``."""
    low, high = interval
    return f"{format_share(low).removesuffix(' %')}–{format_share(high)}"


def count_range(interval: tuple[float, float]) -> str:
    """Format an interval of counts or rates: ``"57,900–62,600"``."""
    low, high = interval
    return f"{format_count(low)}–{format_count(high)}"


def predicted_rate(untried: Untried) -> str:
    """Format the predicted rate of a setting; of an uncertain one, its range."""
    if untried.at_least is not None and untried.is_range:
        return count_range((untried.at_least, untried.at_most))
    return format_count(untried.samples_per_s)


def times(ratio: float) -> str:
    """Format a ratio: ``"0.62×"``."""
    return f"{format_count(ratio)}×"


def relative(log_ratio: float) -> str:
    """Format the logarithm of a ratio as a relative change: ``"9 %"`` for 0.09."""
    return percent(expm1(min(log_ratio, _MOST_LOG)))


def signed_percent(change: float) -> str:
    """Format a relative change: ``"+66.0 %"``."""
    return f"{change * 100:+.1f} %"


def rule(threshold: float) -> str:
    """Say when a run is called starved, fed or inconclusive."""
    return (
        f"starved if the whole 95 % interval is at {format_share(threshold)} or above, "
        "fed if it is below, inconclusive otherwise"
    )


def settings(config: LoaderConfig) -> str:
    """Format loader settings: ``"2 workers, prefetch 2, batch 1024"``, then unusual options."""
    words = [counted(config.num_workers, "worker") if config.num_workers else "no workers"]
    if config.prefetch_factor is not None and config.num_workers:
        words.append(f"prefetch {config.prefetch_factor}")
    if config.batch_size is not None:
        words.append(f"batch {config.batch_size}")
    if config.start_method:
        words.append(config.start_method)
    if config.pin_memory:
        words.append("pinned memory")
    if config.persistent_workers:
        words.append("persistent workers")
    if not config.in_order:
        words.append("out of order")
    return ", ".join(words)


def data_source(source: DataSource) -> str:
    """Format a data source: ``"/data/clicks (csv, 3 objects, 1.07 GB)"``."""
    size = format_bytes(source.bytes)
    decoder = " ".join(filter(None, (source.reader, source.reader_version)))
    decoded = f"{source.format} by {decoder}" if decoder else source.format
    text = f"{source.url} ({decoded}, {counted(source.objects, 'object')}, {size})"
    left_out = skipped(source)
    text = f"{text}, {left_out} left out" if left_out else text
    without = source.columns_left_out
    return (
        f"{text}, without {counted(len(without), 'column')} ({', '.join(without)})"
        if without
        else text
    )


def skipped(source: DataSource) -> str:
    """Count what was left out, such as ``"12 rows, 1 object"``; empty if nothing was."""
    if source.skipped is None:
        return ""
    counts = asdict(source.skipped).items()
    return ", ".join(counted(count, name.removesuffix("s")) for name, count in counts if count)


def machine(environment: Environment) -> str:
    """Return the versions of the software and the hardware on one line."""
    words = [f"pipeprof {environment.pipeprof}", f"Python {environment.python}"]
    if environment.torch:
        words.append(f"torch {environment.torch}")
    words += [f"{name} {version}" for name, version in (environment.readers or {}).items()]
    words.append(environment.platform)
    cores = counted(environment.cores, "core")
    if environment.cores_visible != environment.cores:
        cores = f"{environment.cores} of {counted(environment.cores_visible, 'core')}"
    words.append(cores)
    if environment.ram_bytes is not None:
        words.append(f"{format_bytes(environment.ram_bytes)} RAM")
    if environment.job is not None:
        words.append(_place(environment.job, environment.host))
    return ", ".join(words)


def _place(job: JobPlace, host: str | None) -> str:
    """Return where in its job a process ran: ``"rank 5 of 8 on gpu-07, Slurm job 4711"``."""
    words = f"rank {job.rank}" + (f" of {job.world_size}" if job.world_size else "")
    words += f" on {host}" if host else ""
    if job.job_id:
        words += f", {job.launcher} job {job.job_id}"
    if job.attempt:
        words += f", restarted {counted(job.attempt, 'time')}"
    return words


def gain(advice: Recommendation, now_per_s: float) -> str:
    """Return the predicted or measured samples/s of a change, and its gain over ``now_per_s``; or
    the time that it saves in an epoch.

    A gain of three times or more is a factor, a smaller one a percentage.
    """
    predicted, verified = advice.predicted_samples_per_s, advice.verified_samples_per_s
    range_ = f" ({count_range(advice.interval)})" if advice.interval else ""
    parts = []
    if predicted is not None:
        parts.append(f"predicted {format_count(predicted)} samples/s{range_}")
        range_ = ""
    if verified is not None:
        parts.append(f"measured {format_count(verified)} samples/s{range_}")
    if not parts and advice.interval:
        low, high = advice.interval
        return f"between {format_count(low)} and {format_count(high)} samples/s"
    if not parts and advice.predicted_epoch_saving is not None:
        return f"predicted {advice.predicted_epoch_saving * 100:.0f} % less time an epoch"
    if not parts:
        # without code there is no setting to change: the advice names a lacking resource
        return "not predicted" if advice.code else ""
    best = verified if verified is not None else predicted
    if best is not None and now_per_s > 0:
        ratio = best / now_per_s
        parts.append(times(ratio) if ratio >= 3 else f"{(ratio - 1) * 100:+.0f} %")
    return ", ".join(parts)


def expected(advice: Recommendation) -> list[tuple[str, str]]:
    """Return the known other effects of a change: (label, text) pairs."""
    rows = []
    if advice.predicted_starved is not None:
        predicted = f"predicted {format_share(advice.predicted_starved)}"
        if advice.predicted_starved_interval:
            predicted += f" ({share_range(advice.predicted_starved_interval)})"
        rows.append(("starved", predicted))
    cost = advice.cost or Cost()
    costs = []
    if cost.cores is not None:
        costs.append(f"{cost.cores:.1f} of a core" if cost.cores < 1 else f"{cost.cores:.1f} cores")
    if cost.ram_bytes is not None:
        costs.append(f"{format_bytes(cost.ram_bytes)} of RAM")
    if cost.shared_memory_bytes is not None:
        costs.append(f"{format_bytes(cost.shared_memory_bytes)} of shared memory")
    if costs:
        rows.append(("extra cost", ", ".join(costs)))
    if advice.settle:
        rows.append(("to verify", advice.settle))
    return rows
