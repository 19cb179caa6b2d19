"""What storage, hosts and network must give to feed so many accelerators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import Final

from pipeprof.model import Sizing, SizingFigure
from pipeprof.report.document.blocks import (
    Block,
    Chart,
    Column,
    Document,
    Footnote,
    KeyFigures,
    LabelledFigure,
    Paragraph,
    Section,
    Subheading,
    Table,
    figures,
    row,
)
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
    "simulated_au": "AU, simulated",
    "advertised_bandwidth": "storage, as advertised",
    "requests_in_flight": "requests in flight",
    "cores_per_node": "cores a node",
    "node_network": "network of a node",
    "checkpoint_bandwidth": "checkpoints, written",
    "waiting_cost_per_hour": "lost an hour",
}
"""What is asked first of a sizing: figure → label."""
_MOST_KEY: Final = 4
_PARTS: Final = {
    "simulated_au": "accelerators at work",
    "simulated_straggler_share": "waiting for the slowest step",
    "simulated_starved_fraction": "waiting for data",
}
"""Simulated figure → what the time went into. Together they are all of the time."""
_BINARY: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")
_CAPITALS: Final = {"s3": "S3", "ram": "RAM", "mfu": "MFU", "mtbf": "MTBF", "gpu": "GPU",
                    "gpus": "GPUs", "au": "AU", "flop": "FLOP"}  # fmt: skip
_ENDINGS: Final = ((r"_per_s$", ""), (r"_(interval|mtbf)_s$", r"_\1"), (r"_s$", "_time"),
                   (r"_bytes$", "_size"))  # fmt: skip


def sizing_document(
    sizings: Sequence[Sizing],
    options: Mapping[str, str],
    *,
    created: str,
    version: str,
    explain: bool = True,
) -> Document:
    """``sizings``: at least one, side by side, the first with what was given to all. ``options``:
    input → its name on the command line. ``explain``: with each formula."""
    first, last = sizings[0], sizings[-1]
    gpus = dict.fromkeys(f"{one.gpus:,.0f}" for one in sizings)
    return Document(
        title=f"What {listed(list(gpus))} GPUs must be given",
        subject="sizing",
        created=created,
        version=version,
        sections=(
            Section("key", "", _key_figures(last)),
            _cluster([one for one in sizings if one.what_if == first.what_if]),
            *(_side_by_side(sizings, title, place) for place, title in enumerate(first.sections)),
            Section("formulas", "How each number comes about",
                    tuple(_formulas(last)) if explain else (), f"for {_head(last)}"),
            _inputs(first),
            _lacking(first, options),
        ),
    ).filled()  # fmt: skip


def _key_figures(sizing: Sizing) -> tuple[Block, ...]:
    """The first few of those that it has."""
    known = {each.name: each for section in sizing.sections.values() for each in section}
    found = []
    for name, label in _KEY.items():
        if each := known.get(name):
            note = f"{each.note.rstrip('.')}; " if each.note else ""
            value = _written(each.value, each.unit)
            found.append(LabelledFigure(label, value, f"{note}for {_head(sizing)}"))
    return (KeyFigures(tuple(found[:_MOST_KEY])),) if found else ()


def _cluster(sizings: Sequence[Sizing]) -> Section:
    """What becomes of it as it grows, where that was simulated: drawn, as its figures stand in the
    tables."""
    name, title = "cluster", "The cluster as it grows"
    shares = {}
    for one in sizings:
        known = {each.name: each.value for section in one.sections.values() for each in section}
        if not known.keys() >= _PARTS.keys():
            return Section(name, title, ())
        shares[_head(one)] = {part: known[figure] for figure, part in _PARTS.items()}
    text = "; ".join(
        f"{head}: {format_share(parts['accelerators at work'])} at work, "
        f"{format_share(parts['waiting for data'])} waiting for data"
        for head, parts in shares.items()
    )
    what = "What the accelerators' time goes into"
    chart = Chart("cluster", what, f"{text}.", Stacks("share", "share of their time", shares))
    return Section(name, title, (chart,), "simulated")


def _side_by_side(sizings: Sequence[Sizing], title: str, place: int) -> Section:
    """A row for each number of the section, a column for each number of accelerators."""
    names = dict.fromkeys(each.name for one in sizings for each in one.sections[title])
    columns = [
        {each.name: _written(each.value, each.unit) for each in one.sections[title]}
        for one in sizings
    ]
    rows = tuple(row(_words(name), *(cells.get(name, "") for cells in columns)) for name in names)
    heads = (Column(_head(one)) for one in sizings)
    table = Table((Column("", "name"), *heads), rows)
    return Section(f"part-{place}", title, (table,) if rows else ())


def _formulas(sizing: Sizing) -> Iterator[Block]:
    for section in sizing.sections.values():
        for each in section:
            yield Subheading(f"{_words(each.name)} = {_both(each)}")
            rows = [
                ("formula", each.formula.replace("_", " ")),
                ("numbers", _inserted(sizing, each) if each.numbers else ""),
                ("meaning", each.note),
                ("source", each.source),
            ]
            yield figures((label, text) for label, text in rows if text)


def _inputs(sizing: Sizing) -> Section:
    rows = [
        (_words(each.name), f"{_written(each.value, each.unit)}, {each.origin}")
        for each in sizing.inputs
        if each.name != "gpus"
    ]
    return Section("inputs", "Taken from", (figures(rows),) if rows else ())


def _lacking(sizing: Sizing, options: Mapping[str, str]) -> Section:
    """What to give for the numbers that are not known."""
    wanted: dict[tuple[str, ...], list[str]] = {}
    for name, wants in sizing.lacking.items():
        wanted.setdefault(wants, []).append(_words(name))
    lines = [
        f"{', '.join(names)}: "
        + " ".join(f"--{options.get(want, want.replace('_', '-'))}" for want in wants)
        for wants, names in wanted.items()
    ]
    blocks = tuple(map(Paragraph, lines))
    none = (Footnote("All that can be sized is."),)
    return Section("lacking", "To size more", blocks or none, "give these as well" * bool(blocks))


def _head(sizing: Sizing) -> str:
    gpus = f"{sizing.gpus:,.0f} GPUs"
    return f"{gpus}, {sizing.what_if}" if sizing.what_if else gpus


def _words(name: str) -> str:
    """``requests_per_s`` → ``requests``, ``staging_s`` → ``staging time``."""
    if name == "samples_per_s":
        return "samples per GPU"
    for ending, instead in _ENDINGS:
        shorter = re.sub(ending, instead, name)
        if shorter != name:
            name = shorter
            break
    return " ".join(_CAPITALS.get(word, word) for word in name.split("_"))


def _written(value: float, unit: str) -> str:
    """As people read it."""
    if unit == "B":
        return format_bytes(value)
    if unit == "B/s":
        return format_rate(value)
    if unit == "s":
        return format_duration(value) if value < 86400 * 2 else f"{value / 86400:,.1f} days"
    if unit == "1/s":
        return f"{format_count(value)}/s"
    if unit == "share":
        return format_share(value)
    if unit == "$":
        return f"${value:,.2f}"
    if unit.startswith("FLOP"):
        return f"{value:.3g} {unit}"
    return f"{value:,.0f}" if value == round(value) else format_count(value)


def _both(each: SizingFigure) -> str:
    """SI, and for sizes binary too: ``"4.00 TB (3.64 TiB)"``."""
    plain = _written(each.value, each.unit)
    if each.unit not in ("B", "B/s") or each.value < 1024:
        return plain
    power = min(int(log(each.value, 1024)), len(_BINARY))
    return f"{plain} ({each.value / 1024**power:.3g} {_BINARY[power - 1]}{each.unit[1:]})"


def _inserted(sizing: Sizing, each: SizingFigure) -> str:
    """The formula, with numbers in the place of their names."""
    units = {one.name: one.unit for one in sizing.inputs}
    units |= {one.name: one.unit for section in sizing.sections.values() for one in section}
    names = sorted(each.numbers, key=len, reverse=True)
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names))
    if not pattern.search(each.formula):  # it is written in other words
        return ", ".join(f"{_words(name)} {_written(value, units.get(name, ''))}"
                         for name, value in each.numbers.items())  # fmt: skip
    return pattern.sub(
        lambda match: _written(each.numbers[match[0]], units.get(match[0], "")), each.formula
    )
