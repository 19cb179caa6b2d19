"""How figures and settings are worded, the same in every report."""

from __future__ import annotations

from dataclasses import asdict

from pipeprof.model import (
    Cost,
    DataSource,
    Environment,
    LoaderConfig,
    PauseKind,
    Pauses,
    Profile,
    Recommendation,
    Speedup,
)
from pipeprof.units import counted, format_bytes, format_count, format_duration, format_share

_TOLD = 0.01
"""Of the core time: less is stolen on any shared host."""


_WORTH_LEGEND = "Right: samples/s if the cause were cut, estimated from this run; 90 % in brackets."


def is_emulated(accelerator: str) -> bool:
    return "emulated" in accelerator.lower()


def share_range(interval: tuple[float, float]) -> str:
    """``"38.9–43.6 %"``."""
    low, high = interval
    return f"{format_share(low).removesuffix(' %')}–{format_share(high)}"


def count_range(interval: tuple[float, float]) -> str:
    """``"57,900–62,600"``."""
    low, high = interval
    return f"{format_count(low)}–{format_count(high)}"


def shorten(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters; the middle goes, since names differ at the end."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) * 2 // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def rule(threshold: float) -> str:
    """How the verdict comes about."""
    return (
        f"starved if the whole 95 % interval is at {format_share(threshold)} or above, "
        "fed if it is below"
    )


def more(speedup: Speedup | None) -> str:
    """``"+31 % (25–36)"``; empty where nothing is known."""
    if speedup is None:
        return ""
    low, high = (f"{100 * share:.0f}" for share in speedup.interval)
    return f"{100 * speedup.share:+.0f} % ({low}–{high})".replace("(-", "(−").replace("–-", "–−")


def worth_cells(profile: Profile, cause: str) -> tuple[str, ...]:
    """25 % cheaper, and free; none where the profile has no such figures."""
    if not profile.worth:
        return ()
    worth = profile.worth.get(cause)
    return (more(worth.cheaper), more(worth.free)) if worth else ("", "")


def stall_notes(profile: Profile) -> tuple[str, ...]:
    """What stands under the table of causes, a line each."""
    legend = _WORTH_LEGEND if profile.worth else ""
    lines = (legend, _where_awaited(profile), *profile.diagnosis.disagreements)
    return tuple(line for line in lines if line)


def _where_awaited(profile: Profile) -> str:
    """Where the awaited batch was meanwhile, if not at what is blamed; else empty."""
    if not profile.awaited_in or next(iter(profile.awaited_in)) == next(iter(profile.blame)):
        return ""
    shares = [
        f"{name} {format_share(seconds / profile.stall_s)}"
        for name, seconds in profile.awaited_in.items()
        if seconds >= 0.05 * profile.stall_s
    ]
    return f"Meanwhile the awaited batch itself was in {', '.join(shares)}: where, not why."


def pause_name(kind: PauseKind) -> str:
    """What was going on in it."""
    if kind.evidence == "length":
        return "unnamed, far longer than a step"
    return f"loader {kind.name}" if kind.evidence == "loader" else kind.name


def pauses_row(pauses: Pauses) -> str:
    """How many and how long, and what the verdict would be with them."""
    as_steps = pauses.as_steps
    return (
        f"{pauses.count:,}, {format_duration(pauses.total_s)} in all, "
        f"{format_share(pauses.share)} of the time, left out; as steps: {as_steps.verdict} "
        f"({format_share(as_steps.starved_fraction)})"
    )


def times(ratio: float) -> str:
    """``"0.62×"``."""
    return f"{format_count(ratio)}×"


def settings(config: LoaderConfig) -> str:
    """``"2 workers, prefetch 2, batch 1024"``, and what differs from a plain DataLoader."""
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
    """``"/data/clicks (csv, 3 objects, 1.07 GB)"``."""
    size = format_bytes(source.bytes)
    told = f"{source.url} ({source.format}, {counted(source.objects, 'object')}, {size})"
    left_out = skipped(source)
    return f"{told}, {left_out} left out" if left_out else told


def skipped(source: DataSource) -> str:
    """``"12 rows, 1 object"``; nothing when nothing was left out."""
    if source.skipped is None:
        return ""
    counts = asdict(source.skipped).items()
    return ", ".join(counted(count, name.removesuffix("s")) for name, count in counts if count)


def machine(environment: Environment) -> str:
    """Software and hardware, in one line."""
    words = [f"pipeprof {environment.pipeprof}", f"Python {environment.python}"]
    if environment.torch:
        words.append(f"torch {environment.torch}")
    words.append(environment.platform)
    cores = counted(environment.cores, "core")
    if environment.cores_visible != environment.cores:
        cores = f"{environment.cores} of {counted(environment.cores_visible, 'core')}"
    words.append(cores)
    if environment.ram_bytes is not None:
        words.append(f"{format_bytes(environment.ram_bytes)} RAM")
    return ", ".join(words)


def stolen(profile: Profile) -> list[tuple[str, str]]:
    """Nothing where it is unknown, or next to nothing."""
    share = profile.stolen_share
    if share is None or share <= _TOLD:
        return []
    told = f"{format_share(share)} of the machine's core time went to others on its host (steal)"
    return [("stolen", told)]


def gain(advice: Recommendation, now_per_s: float) -> str:
    """What the change brings over ``now_per_s`` samples/s, and how that is known."""
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
        return f"open: {format_count(low)} to {format_count(high)} samples/s"
    if not parts:
        return "not predicted" if advice.code else ""  # else it is no setting, but what is short
    best = verified if verified is not None else predicted
    if best is not None and now_per_s > 0:
        parts.append(_percent(best / now_per_s - 1))
    return ", ".join(parts)


def expected(advice: Recommendation) -> list[tuple[str, str]]:
    """What else a change brings and takes, as far as it is known."""
    rows = []
    if advice.predicted_starved is not None:
        share = format_share(advice.predicted_starved)
        range_ = advice.predicted_starved_interval
        rows.append(("starved", f"{share} then{f' ({share_range(range_)})' if range_ else ''}"))
    cost = advice.cost or Cost()
    words = []
    if cost.cores is not None:
        words.append(f"{cost.cores:.1f} of a core" if cost.cores < 1 else f"{cost.cores:.1f} cores")
    if cost.ram_bytes is not None:
        words.append(f"{format_bytes(cost.ram_bytes)} of RAM")
    if cost.shared_memory_bytes is not None:
        words.append(f"{format_bytes(cost.shared_memory_bytes)} of shared memory")
    if words:
        rows.append(("takes", f"{', '.join(words)} more"))
    if advice.settle:
        rows.append(("to settle it", advice.settle))
    return rows


def _percent(change: float) -> str:
    """``"+66 %"``; a factor from threefold up."""
    if change >= 2:
        return times(1 + change)
    return f"{change * 100:+.0f} %"
