"""What converting a data set would bring: the part of a sweep's report that tells it."""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.model import Conversion, Copy, Gain, Sample, SweepResult, Trial
from pipeprof.report.layout import Column, Page
from pipeprof.report.phrases import shorten, times
from pipeprof.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
)

_STORAGE = 50
"""Most columns for the name of a storage."""


def gains_section(page: Page, sweep: SweepResult, label: str) -> None:
    """Nothing where no other format was asked for."""
    found = sweep.conversion
    if found is None:
        return
    page.heading("What would I gain by converting?", label)
    baseline = trial_at(sweep, found.baseline)
    if found.sample is None or baseline is None:
        page.line("Nothing can be said yet: the data as it is has not been tried.")
        return
    for storage, advice in found.advice.items():
        page.line(f"On {shorten(storage, _STORAGE)}: {advice}")
    for line in found.layout:
        page.line(line)
    for copy in found.copies:
        if copy.skipped is not None:
            page.line(f"{copy.name} on {copy.storage} was not tried: {copy.skipped}")
    page.gap()
    _against(page, sweep, found, baseline)
    page.line(_what_it_is_of(found.sample))
    if found.control is not None:
        page.line("What the same data differs by is noise: the intervals hold it.")
    if found.kept:
        for copy in found.copies:
            page.line(f"Kept: {copy.url}")
    _costs(page, sweep, found, found.sample, baseline)


def _against(page: Page, sweep: SweepResult, found: Conversion, baseline: Trial) -> None:
    """As multiples of the data as it is."""
    one = times(1.0)
    starved = format_share(baseline.starved_fraction)
    rows = [_cells(f"{baseline.format} as it is", baseline, one, "", one, one, starved)]
    control = trial_at(sweep, found.control)
    if control is not None:
        speed = times(control.samples_per_s / max(baseline.samples_per_s, 1e-9))
        again = format_share(control.starved_fraction)
        rows.append(_cells("the same, again", control, speed, "", "", "", again))
    for copy, gain, trial in _tried(sweep, found):
        low, high = gain.speed_interval
        rows.append(
            _cells(
                _named(copy, found),
                trial,
                times(gain.speed),
                f"{format_count(low)}–{format_count(high)}",
                times(gain.storage),
                times(gain.cpu) if gain.cpu is not None else "?",
                format_share(trial.starved_fraction),
            )
        )
    titles = ("samples/s", "speed", "95 %", "storage", "CPU")
    columns = [Column("format", right=False, wraps=True), *(Column(title) for title in titles)]
    page.table([*columns, Column("starved", spare=1)], rows)


def _cells(name: str, trial: Trial, *figures: str) -> tuple[str, ...]:
    return (name, format_count(trial.samples_per_s), *figures)


def _costs(
    page: Page, sweep: SweepResult, found: Conversion, sample: Sample, baseline: Trial
) -> None:
    """In bytes and seconds."""
    page.heading("What a sample takes")
    stored = format_bytes(sample.storage_bytes / max(sample.rows, 1))
    rows = [(f"{baseline.format} as it is", stored, *_taken(baseline), "", "")]
    rows += [
        (
            _named(copy, found),
            format_bytes(copy.bytes / max(copy.rows, 1)),
            *_taken(trial),
            str(copy.objects),
            format_rate(copy.bytes / copy.write_s) if copy.write_s > 0 else "",
        )
        for copy, _, trial in _tried(sweep, found)
    ]
    titles = ("stored", "read", "moved", "CPU", "decode", "files")
    columns = [Column("format", right=False, wraps=True), *(Column(title) for title in titles)]
    page.table([*columns, Column("written at", spare=1)], rows)
    page.line(
        "stored: on storage; read: asked of it, which crosses the wire of a remote one; moved: by "
        "disks, ? where that cannot be seen; written at: by one process."
    )


def _taken(trial: Trial) -> tuple[str, str, str, str]:
    moved, cpu = trial.physical_bytes_per_sample, trial.cpu_s_per_sample
    decode = trial.decode_s_per_sample
    return (
        format_bytes(trial.bytes_per_sample),
        format_bytes(moved) if moved is not None else "?",
        format_duration(cpu) if cpu is not None else "?",
        format_duration(decode) if decode is not None else "?",
    )


def _what_it_is_of(sample: Sample) -> str:
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
    storages: Sequence[str] = list(dict.fromkeys(copy.storage for copy in found.copies))
    return copy.name if len(storages) == 1 else f"{copy.name} on {shorten(copy.storage, 20)}"


def trial_at(sweep: SweepResult, index: int | None) -> Trial | None:
    """A trial, if the file is what it should be."""
    if index is None or not 0 <= index < len(sweep.trials):
        return None
    return sweep.trials[index]
