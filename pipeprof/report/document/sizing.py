"""Present a sizing: what storage, hosts and network must deliver to feed a number of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import log
from typing import Final

from pipeprof.model import Sizing, SizingFigure
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Stacks
from pipeprof.units import (
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    format_share,
    listed,
)

_KEY: Final = {
    "job_utilisation": "utilisation, simulated",
    "simulated_au": "AU, simulated",
    "advertised_bandwidth": "storage, as advertised",
    "requests_in_flight": "requests in flight",
    "cores_per_node": "cores per node",
    "node_network": "network per node",
    "checkpoint_bandwidth": "checkpoint writes",
    "waiting_cost_per_hour": "cost of waiting per hour",
}
"""Key figure → its label, the most important first."""
_MOST_KEY_FIGURES: Final = 4
_PARTS: Final = {
    "simulated_au": "accelerators at work",
    "simulated_straggler_share": "waiting for the slowest step",
    "simulated_starved_fraction": "waiting for data",
}
"""Simulated figure → what the accelerators' time went into. The three sum up to 1."""
_JOB_PARTS: Final = {
    "job_utilisation": "accelerators at work",
    "job_lost_to_sync": "exchanging gradients",
    "job_lost_to_slowest_step": "waiting for the slowest step",
    "job_lost_to_loading": "waiting for data, all alike",
    "job_lost_to_tails": "waiting for a late batch",
    "job_lost_to_storage": "waiting for the storage",
}
"""The same of a job that is simulated from a profile."""
_BINARY: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")
_SPELLINGS: Final = {"s3": "S3", "ram": "RAM", "mfu": "MFU", "mtbf": "MTBF", "gpu": "GPU",
                    "gpus": "GPUs", "au": "AU", "flop": "FLOP"}  # fmt: skip
_UNIT_ENDINGS: Final = ((r"_per_s$", ""), (r"_(interval|mtbf)_s$", r"_\1"), (r"_s$", "_time"),
                   (r"_bytes$", "_size"))  # fmt: skip


def sizing_document(
    sizings: Sequence[Sizing],
    options: Mapping[str, str],
    *,
    created: str,
    version: str,
    explain: bool = True,
) -> doc.Document:
    """Return the document of one or more ``sizings``, with the formulas if ``explain`` is set.

    Inputs are taken from the first sizing. ``options`` maps an input to its command line option.
    """
    first, last = sizings[0], sizings[-1]
    gpus = dict.fromkeys(f"{one.gpus:,.0f}" for one in sizings)
    alike = [one for one in sizings if one.what_if == first.what_if]
    return doc.Document(
        title=f"What {listed(list(gpus))} GPUs need",
        subject="sizing",
        created=created,
        version=version,
        sections=(
            doc.section("key", "", _key_figures(last)),
            _growth("cluster", "The cluster as it grows", _PARTS, alike),
            _growth("job", "The job as it grows", _JOB_PARTS, alike),
            *(_size_table(sizings, title, place) for place, title in enumerate(first.sections)),
            doc.section("formulas", "How each number is calculated",
                    *(_formulas(last) if explain else ()), note=f"for {_label(last)}"),
            _inputs(first),
            _missing_inputs(first, options),
        ),
    ).filled()  # fmt: skip


def _key_figures(sizing: Sizing) -> doc.KeyFigures:
    """Return the first few key figures that the sizing has."""
    known = _by_name(sizing)
    key = []
    for name, label in _KEY.items():
        if each := known.get(name):
            note = f"{each.note.rstrip('.')}; " if each.note else ""
            value = _format(each.value, each.unit)
            key.append(doc.LabelledFigure(label, value, f"{note}for {_label(sizing)}"))
    return doc.KeyFigures(tuple(key[:_MOST_KEY_FIGURES]))


def _growth(
    name: str, title: str, parts: Mapping[str, str], sizings: Sequence[Sizing]
) -> doc.Section:
    """Draw what the accelerators' time goes into by their number; empty if it was not simulated."""
    shares = {}
    for one in sizings:
        known = _by_name(one)
        shares[_label(one)] = {
            part: known[figure].value for figure, part in parts.items() if figure in known
        }
    if not all(shares.values()):
        return doc.section(name, title)
    text = "; ".join(
        f"{label}: "
        + ", ".join(
            f"{format_share(share)} {part.removeprefix('accelerators ')}"
            for part, share in by_part.items()
            if share >= 0.0005
        )
        for label, by_part in shares.items()
    )
    heading = "What the accelerators' time goes into"
    data = Stacks("share", "share of their time", shares)
    return doc.section(name, title, doc.Chart(name, heading, f"{text}.", data), note="simulated")


def _size_table(sizings: Sequence[Sizing], title: str, place: int) -> doc.Section:
    """Return a table with a row per figure of the section and a column per sizing."""
    names = dict.fromkeys(each.name for one in sizings for each in one.sections[title])
    columns = [
        {each.name: _format(each.value, each.unit) for each in one.sections[title]}
        for one in sizings
    ]
    rows = tuple(
        doc.row(_words(name), *(cells.get(name, "") for cells in columns)) for name in names
    )
    titles = (doc.Column(_label(one)) for one in sizings)
    table = doc.Table((doc.Column("", "name"), *titles), rows)
    return doc.section(f"part-{place}", title, table if names else None)


def _formulas(sizing: Sizing) -> Iterator[doc.Block]:
    for each in chain.from_iterable(sizing.sections.values()):
        yield doc.Subheading(f"{_words(each.name)} = {_format_with_binary(each)}")
        rows = [
            ("formula", each.formula.replace("_", " ")),
            ("numbers", _formula_with_numbers(sizing, each) if each.numbers else ""),
            ("meaning", each.note),
            ("source", each.source),
        ]
        yield doc.figures(rows)


def _inputs(sizing: Sizing) -> doc.Section:
    rows = [
        (_words(each.name), f"{_format(each.value, each.unit)}, {each.origin}")
        for each in sizing.inputs
        if each.name != "gpus"
    ]
    return doc.section("inputs", "Inputs and where they come from", doc.figures(rows))


def _missing_inputs(sizing: Sizing, options: Mapping[str, str]) -> doc.Section:
    """Name the options that would give the figures that are still unknown."""
    wanted: dict[tuple[str, ...], list[str]] = {}
    for name, wants in sizing.lacking.items():
        wanted.setdefault(wants, []).append(_words(name))
    lines = [
        f"{', '.join(names)}: "
        + " ".join(f"--{options.get(want, want.replace('_', '-'))}" for want in wants)
        for wants, names in wanted.items()
    ]
    if not lines:
        return doc.section("lacking", "Figures that need more input", "None: all are known.")
    return doc.section(
        "lacking",
        "Figures that need more input",
        *map(doc.Paragraph, lines),
        note="add these options",
    )


def _by_name(sizing: Sizing) -> dict[str, SizingFigure]:
    return {each.name: each for each in chain.from_iterable(sizing.sections.values())}


def _label(sizing: Sizing) -> str:
    gpus = f"{sizing.gpus:,.0f} GPUs"
    return f"{gpus}, {sizing.what_if}" if sizing.what_if else gpus


def _words(name: str) -> str:
    """Turn a field into words: ``requests_per_s`` → "requests", ``staging_s`` → "staging time"."""
    if name == "samples_per_s":
        return "samples per GPU"
    for ending, replacement in _UNIT_ENDINGS:
        replaced = re.sub(ending, replacement, name)
        if replaced != name:
            name = replaced
            break
    return " ".join(_SPELLINGS.get(word, word) for word in name.split("_"))


def _format(value: float, unit: str) -> str:
    return _FORMATTERS.get(unit, _format_number)(value)


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else format_count(value)


def _format_time(seconds: float) -> str:
    return format_duration(seconds) if seconds < 86400 * 2 else f"{seconds / 86400:,.1f} days"


_FORMATTERS: Final[dict[str, Callable[[float], str]]] = {
    "B": format_bytes,
    "B/s": format_rate,
    "s": _format_time,
    "1/s": lambda value: f"{format_count(value)}/s",
    "share": format_share,
    "$": "${:,.2f}".format,
    "FLOP": "{:.3g} FLOP".format,
    "FLOP/s": "{:.3g} FLOP/s".format,
}
"""`SizingFigure.unit` → the function that formats a value of it."""


def _format_with_binary(each: SizingFigure) -> str:
    """Format a figure; sizes also in binary units: ``"4.00 TB (3.64 TiB)"``."""
    decimal = _format(each.value, each.unit)
    if each.unit not in ("B", "B/s") or each.value < 1024:
        return decimal
    power = min(int(log(each.value, 1024)), len(_BINARY))
    return f"{decimal} ({each.value / 1024**power:.3g} {_BINARY[power - 1]}{each.unit[1:]})"


def _formula_with_numbers(sizing: Sizing, each: SizingFigure) -> str:
    """Return the formula with the numbers in place of their names."""
    units = {one.name: one.unit for one in sizing.inputs}
    units |= {name: one.unit for name, one in _by_name(sizing).items()}
    names = sorted(each.numbers, key=len, reverse=True)
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names))
    if not pattern.search(each.formula):  # the formula is prose without the names
        return ", ".join(f"{_words(name)} {_format(value, units.get(name, ''))}"
                         for name, value in each.numbers.items())  # fmt: skip
    return pattern.sub(
        lambda match: _format(each.numbers[match[0]], units.get(match[0], "")), each.formula
    )
