"""What converting a data set would bring."""

from __future__ import annotations

from pipeprof.model import Conversion, Copy, Gain, Sample, SweepResult, Trial
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.data_sets import trial_at
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

_STORAGE = 50
"""Most characters of the name of a storage."""


def conversion(sweep: SweepResult) -> doc.Section:
    """Nothing where no other format was asked for."""
    name, title = "conversion", "What would I gain by converting?"
    found = sweep.conversion
    if found is None:
        return doc.section(name, title)
    baseline = trial_at(sweep, found.baseline)
    if found.sample is None or baseline is None:
        unknown = "Nothing can be said yet: the data as it is has not been tried."
        return doc.section(name, title, unknown)
    untried = (
        f"{copy.name} on {copy.storage} was not tried: {copy.skipped}"
        for copy in found.copies
        if copy.skipped is not None
    )
    noise = "What the same data differs by is noise: the intervals hold it."
    return doc.section(
        name,
        title,
        *map(doc.Paragraph, (*advice_lines(found), *untried)),
        _speeds(sweep, found, baseline),
        _sampled(found.sample),
        noise if found.control is not None else None,
        *(doc.Paragraph(f"Kept: {copy.url}") for copy in found.copies if found.kept),
        note=emulated(sweep.environment).strip(" ()"),
    )


def advice_lines(found: Conversion | None) -> list[str]:
    """What to do on each storage."""
    if found is None:
        return []
    advice = [f"On {shorten(name, _STORAGE)}: {text}" for name, text in found.advice.items()]
    return [*advice, *found.layout]


def _speeds(sweep: SweepResult, found: Conversion, baseline: Trial) -> doc.Table:
    """As multiples of the data as it is."""
    one = times(1.0)
    rows = [(f"{baseline.format} as it is", baseline, one, "", one, one)]
    control = trial_at(sweep, found.control)
    if control is not None:
        speed = times(control.samples_per_s / max(baseline.samples_per_s, 1e-9))
        rows.append(("the same, again", control, speed, "", "", ""))
    for copy, gain, trial in _tried(sweep, found):
        cpu, range_ = or_unknown(gain.cpu, times), count_range(gain.speed_interval)
        speed, storage = times(gain.speed), times(gain.storage)
        rows.append((_named(copy, found), trial, speed, range_, storage, cpu))
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
    """In bytes and seconds."""
    name, title = "sample", "What a sample takes"
    found = sweep.conversion
    baseline = trial_at(sweep, found.baseline) if found else None
    if found is None or found.sample is None or baseline is None:
        return doc.section(name, title)
    stored = format_bytes(found.sample.storage_bytes / max(found.sample.rows, 1))
    rows = [doc.row(f"{baseline.format} as it is", stored, *_taken(baseline), "", "")]
    rows += [
        doc.row(
            _named(copy, found),
            format_bytes(copy.bytes / max(copy.rows, 1)),
            *_taken(trial),
            str(copy.objects),
            format_rate(copy.bytes / copy.write_s) if copy.write_s > 0 else "",
        )
        for copy, _, trial in _tried(sweep, found)
    ]
    titles = doc.columns(("stored", "read", "moved", "CPU", "decode", "files"))
    table = doc.Table(
        (doc.Column("format", "text"), *titles, doc.Column("written at", spare=1)), tuple(rows)
    )
    legend = (
        "stored: on storage; read: asked of it, which crosses the wire of a remote one; moved: by "
        "disks, unknown where that cannot be seen; written at: by one process."
    )
    return doc.section(name, title, table, legend)


def _taken(trial: Trial) -> tuple[str, str, str, str]:
    return (
        format_bytes(trial.bytes_per_sample),
        or_unknown(trial.physical_bytes_per_sample, format_bytes),
        or_unknown(trial.cpu_s_per_sample, format_duration),
        or_unknown(trial.decode_s_per_sample, format_duration),
    )


def _sampled(sample: Sample) -> str:
    return (
        f"Of a sample of {counted(sample.rows, 'row')} from {sample.parts:,} of "
        f"{counted(sample.parts_in_all, 'split')}: {format_share(sample.share)} of the data, "
        f"{format_bytes(sample.ram_bytes)} in RAM. Of the data as it is, the same splits are read."
    )


def _tried(sweep: SweepResult, found: Conversion) -> list[tuple[Copy, Gain, Trial]]:
    gains = {gain.url: gain for gain in found.gains}
    rows = []
    for copy in found.copies:
        gain = gains.get(copy.url)
        trial = trial_at(sweep, gain.trial) if gain else None
        if gain is not None and trial is not None:
            rows.append((copy, gain, trial))
    return rows


def _named(copy: Copy, found: Conversion) -> str:
    storages = {copy.storage for copy in found.copies}
    return copy.name if len(storages) == 1 else f"{copy.name} on {shorten(copy.storage, 20)}"
