"""Present what converting a data set would gain, and what a sample costs in each format."""

from __future__ import annotations

from pipeprof.model import Conversion, Gain, Sample, SweepResult, Trial
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import copy_names, trial_at
from pipeprof.report.document.wording import count_range, emulated, or_unknown, times
from pipeprof.report.text import shorten
from pipeprof.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
)

_LONGEST_STORAGE = 50
"""Most characters of the name of a storage."""
_OUT_OF_REACH = (
    "≤: what all its settings may give, with 95 % confidence. The search ended when that was less "
    "than another row gives, so its samples/s are not those of its best setting."
)


def conversion(sweep: SweepResult) -> doc.Section:
    """Return the advice and the speed of each copy; empty if no other format was requested."""
    name, title = "conversion", "What would I gain by converting?"
    converted = sweep.conversion
    if converted is None:
        return doc.section(name, title)
    baseline = trial_at(sweep, converted.baseline)
    if converted.sample is None or baseline is None:
        unknown = "Unknown: the data as it is has not been tried yet."
        return doc.section(name, title, unknown)
    untried = (
        f"{copy.name} on {copy.storage} was not tried: {copy.skipped}"
        for copy in converted.copies
        if copy.skipped is not None
    )
    noise = "The two trials of the data as it is differ by noise, which the intervals include."
    return doc.section(
        name,
        title,
        *map(doc.Paragraph, (*advice_lines(converted), *untried)),
        _speeds(sweep, converted, baseline),
        _sample_size(converted.sample),
        noise if converted.control is not None else None,
        _OUT_OF_REACH if not all(gain.searched for gain in converted.gains) else None,
        *(doc.Paragraph(f"Kept: {copy.url}") for copy in converted.copies if converted.kept),
        note=emulated(sweep.environment).strip(" ()"),
    )


def advice_lines(converted: Conversion | None) -> list[str]:
    """Return the advice for each storage; empty without a conversion."""
    if converted is None:
        return []
    advice = [
        f"On {shorten(name, _LONGEST_STORAGE)}: {text}" for name, text in converted.advice.items()
    ]
    return [*advice, *converted.layout]


def _speeds(sweep: SweepResult, converted: Conversion, baseline: Trial) -> doc.Table:
    """Return speeds, sizes and CPU times as multiples of the original data."""
    one = times(1.0)
    rows = [(_as_it_is(baseline), baseline, one, "", one, one)]
    control = trial_at(sweep, converted.control)
    if control is not None:
        speed = times(control.samples_per_s / max(baseline.samples_per_s, 1e-9))
        rows.append(("the same, repeated", control, speed, "", "", ""))
    for label, gain, trial in _tried(sweep, converted):
        cpu, storage = or_unknown(gain.cpu, times), times(gain.storage)
        speed, interval = times(gain.speed), count_range(gain.speed_interval)
        if not gain.searched:
            speed, interval = f"≤ {times(gain.speed_interval[1])}", ""
        rows.append((label, trial, speed, interval, storage, cpu))
    titles = doc.columns(("samples/s", "speed", "95 %", "storage", "CPU"))
    return doc.Table(
        (doc.Column("format", "text"), *titles, doc.Column("starved", spare=1)),
        tuple(
            doc.row(name, format_count(trial.samples_per_s), *cells,
                format_share(trial.starved_fraction))
            for name, trial, *cells in rows
        ),
    )  # fmt: skip


def cost_of_a_sample(sweep: SweepResult) -> doc.Section:
    """Return the bytes and CPU seconds that a sample takes in each format."""
    name, title = "sample", "Cost of a sample"
    converted = sweep.conversion
    baseline = trial_at(sweep, converted.baseline) if converted else None
    if converted is None or converted.sample is None or baseline is None:
        return doc.section(name, title)
    stored = format_bytes(converted.sample.storage_bytes / max(converted.sample.rows, 1))
    copies = {copy.url: copy for copy in converted.copies}
    rows = [doc.row(_as_it_is(baseline), stored, *_costs(baseline), "", "")]
    for label, _, trial in _tried(sweep, converted):
        size, written = stored, ("", "")
        if (copy := copies.get(trial.data_url)) is not None:
            size = format_bytes(copy.bytes / max(copy.rows, 1))
            speed = format_rate(copy.bytes / copy.write_s) if copy.write_s > 0 else ""
            written = str(copy.objects), speed
        rows.append(doc.row(label, size, *_costs(trial), *written))
    titles = doc.columns(("stored", "read", "moved", "CPU", "decode", "files"))
    table = doc.Table(
        (doc.Column("format", "text"), *titles, doc.Column("written at", spare=1)), tuple(rows)
    )
    legend = (
        "Stored: bytes on storage. Read: bytes requested from storage. Moved: bytes that disks "
        "transferred, if known. Written at: speed of one process."
    )
    return doc.section(name, title, table, legend)


def _as_it_is(trial: Trial) -> str:
    return f"{trial.format} as it is{trial.by_reader}"


def _costs(trial: Trial) -> tuple[str, str, str, str]:
    """Return the bytes read, the bytes moved, the CPU time and the decode time of a sample."""
    return (
        format_bytes(trial.bytes_per_sample),
        or_unknown(trial.physical_bytes_per_sample, format_bytes),
        or_unknown(trial.cpu_s_per_sample, format_duration),
        or_unknown(trial.decode_s_per_sample, format_duration),
    )


def _sample_size(sample: Sample) -> str:
    return (
        f"Measured on {counted(sample.rows, 'row')} from {sample.parts:,} of "
        f"{counted(sample.parts_in_all, 'split')}: {format_share(sample.share)} of the data, "
        f"{format_bytes(sample.ram_bytes)} in RAM. The data as it is was read from the same splits."
    )


def _tried(sweep: SweepResult, converted: Conversion) -> list[tuple[str, Gain, Trial]]:
    """Return the label of each copy, or of the data as it is, by each reader that was tried."""
    copies, rows = copy_names(sweep), []
    for gain in converted.gains:
        trial = trial_at(sweep, gain.trial)
        if trial is not None:
            name = copies.get(trial.data_url)
            label = name + trial.by_reader if name else _as_it_is(trial)
            rows.append((label, gain, trial))
    return rows
