"""Present what a cache on a local disk is worth to each data set."""

from __future__ import annotations

from pipeprof.model import LocalCache, SweepResult
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import DataSet, sets_with
from pipeprof.report.document.wording import count_range, times
from pipeprof.units import counted, format_bytes, format_count, format_share

_NAME, _TITLE = "local-cache", "What would a local cache bring?"


def local_cache(sweep: SweepResult) -> doc.Section:
    """Return the passes of each data set, and what follows; empty if no cache was measured."""
    blocks: list[doc.Block] = []
    for data, measured in sets_with(sweep, sweep.local_cache):
        blocks.append(doc.Subheading(f"{data.label}: a cache in {measured.folder}"))
        blocks.append(_passes(measured))
        blocks += [doc.Paragraph(line) for line in (_worth(measured), *_size(measured)) if line]
        if measured.difference == "faster" and data.exists:
            blocks.append(doc.Code(_code(data, measured)))
    return doc.section(_NAME, _TITLE, *blocks)


def local_cache_in_brief(sweep: SweepResult) -> doc.Section:
    """Return a sentence for each data set."""
    lines = (
        f"{data.label}: {_worth(measured)}"
        for data, measured in sets_with(sweep, sweep.local_cache)
    )
    return doc.section(_NAME, _TITLE, *map(doc.Paragraph, lines))


def _passes(measured: LocalCache) -> doc.Table:
    rows = (
        ("all, without a cache", measured.uncached),
        ("the first, which fills it", measured.filling),
        ("later ones, from the cache", measured.cached),
    )
    return doc.Table(
        (doc.Column("epoch", "text"), *doc.columns(("samples/s", "starved"))),
        tuple(
            doc.row(name, format_count(each.samples_per_s), format_share(each.starved_fraction))
            for name, each in rows
        ),
    )


def _worth(measured: LocalCache) -> str:
    """Say what the cache gains, and when it has paid."""
    gain = f"{times(measured.gain)} (95 %: {count_range(measured.gain_interval)})"
    if measured.difference != "faster":
        clearly = "slower" if measured.difference == "slower" else "not clearly faster"
        return f"A local cache brings nothing: later epochs are {clearly}, {gain}."
    after, soonest, latest = map(_epochs, (measured.break_even, *measured.break_even_interval))
    return (
        f"With a local cache later epochs are {gain} as fast. It has paid for its filling after "
        f"{after} epochs (95 %: {soonest}–{latest})."
    )


def _epochs(count: float | None) -> str:
    return "never" if count is None else format_count(count)


def _size(measured: LocalCache) -> list[str]:
    """Say what the cache must hold, and what one that is too small does."""
    size = format_bytes(measured.dataset_bytes)
    measured_on = f"{counted(measured.splits, 'split')} of {format_bytes(measured.cached_bytes)}"
    times_each = f"{measured.rounds} times each"
    lines = [f"All of the data set takes {size}. Measured on {measured_on}, {times_each}."]
    if measured.difference != "faster":
        return lines
    if measured.share < 1:
        lines.append(
            f"Its {format_bytes(measured.limit_bytes or 0)} hold {format_share(measured.share)}, "
            f"with which later epochs have {format_count(measured.limited.samples_per_s)} "
            f"samples/s, starved {format_share(measured.limited.starved_fraction)}: if nothing is "
            "evicted. A cache that evicts what was used the longest ago has no hits in an order "
            f"that repeats, and {format_share(measured.evicting_hits)} in one that is shuffled."
        )
    if measured.least_share is None:
        lines.append("Even with all of the data set in the cache the accelerator starves.")
    elif measured.least_share > 0:
        least = format_bytes(measured.least_share * measured.dataset_bytes)
        share = format_share(measured.least_share)
        lines.append(f"To feed the accelerator it must hold at least {least} ({share}).")
    return lines


def _code(data: DataSet, measured: LocalCache) -> str:
    folder = measured.folder
    limit = f", local_cache_bytes={measured.limit_bytes}" if measured.limit_bytes else ""
    return (
        f'read = pipeprof.ReadOptions(local_cache="{folder}"{limit})\n'
        f'dataset = pipeprof.open_dataset("{data.url}", read=read)'
    )
