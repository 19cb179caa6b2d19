"""What storage, hosts and network must give to feed so many accelerators."""

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
) -> doc.Document:
    """``sizings``: at least one, side by side, the first with what was given to all. ``options``:
    input → its name on the command line. ``explain``: with each formula."""
    first, last = sizings[0], sizings[-1]
    gpus = dict.fromkeys(f"{one.gpus:,.0f}" for one in sizings)
    return doc.Document(
        title=f"What {listed(list(gpus))} GPUs must be given",
        subject="sizing",
        created=created,
        version=version,
        sections=(
            doc.section("key", "", _key_figures(last)),
            _cluster([one for one in sizings if one.what_if == first.what_if]),
            *(_side_by_side(sizings, title, place) for place, title in enumerate(first.sections)),
            doc.section("formulas", "How each number comes about",
                    *(_formulas(last) if explain else ()), note=f"for {_head(last)}"),
            _inputs(first),
            _lacking(first, options),
        ),
    ).filled()  # fmt: skip


def _key_figures(sizing: Sizing) -> doc.KeyFigures:
    """The first few of those that it has."""
    known = _by_name(sizing)
    found = []
    for name, label in _KEY.items():
        if each := known.get(name):
            note = f"{each.note.rstrip('.')}; " if each.note else ""
            value = _written(each.value, each.unit)
            found.append(doc.LabelledFigure(label, value, f"{note}for {_head(sizing)}"))
    return doc.KeyFigures(tuple(found[:_MOST_KEY]))


def _cluster(sizings: Sequence[Sizing]) -> doc.Section:
    """What becomes of it as it grows, where that was simulated: drawn, as its figures stand in the
    tables."""
    name, title = "cluster", "The cluster as it grows"
    shares = {}
    for one in sizings:
        known = _by_name(one)
        if not known.keys() >= _PARTS.keys():
            return doc.section(name, title)
        shares[_head(one)] = {part: known[figure].value for figure, part in _PARTS.items()}
    text = "; ".join(
        f"{head}: {format_share(parts['accelerators at work'])} at work, "
        f"{format_share(parts['waiting for data'])} waiting for data"
        for head, parts in shares.items()
    )
    what = "What the accelerators' time goes into"
    chart = doc.Chart("cluster", what, f"{text}.", Stacks("share", "share of their time", shares))
    return doc.section(name, title, chart, note="simulated")


def _side_by_side(sizings: Sequence[Sizing], title: str, place: int) -> doc.Section:
    """A row for each number of the section, a column for each number of accelerators."""
    names = dict.fromkeys(each.name for one in sizings for each in one.sections[title])
    columns = [
        {each.name: _written(each.value, each.unit) for each in one.sections[title]}
        for one in sizings
    ]
    rows = tuple(
        doc.row(_words(name), *(cells.get(name, "") for cells in columns)) for name in names
    )
    heads = (doc.Column(_head(one)) for one in sizings)
    table = doc.Table((doc.Column("", "name"), *heads), rows)
    return doc.section(f"part-{place}", title, table if names else None)


def _formulas(sizing: Sizing) -> Iterator[doc.Block]:
    for each in chain.from_iterable(sizing.sections.values()):
        yield doc.Subheading(f"{_words(each.name)} = {_both(each)}")
        rows = [
            ("formula", each.formula.replace("_", " ")),
            ("numbers", _inserted(sizing, each) if each.numbers else ""),
            ("meaning", each.note),
            ("source", each.source),
        ]
        yield doc.figures(rows)


def _inputs(sizing: Sizing) -> doc.Section:
    rows = [
        (_words(each.name), f"{_written(each.value, each.unit)}, {each.origin}")
        for each in sizing.inputs
        if each.name != "gpus"
    ]
    return doc.section("inputs", "Taken from", doc.figures(rows))


def _lacking(sizing: Sizing, options: Mapping[str, str]) -> doc.Section:
    """What to give for the numbers that are not known."""
    wanted: dict[tuple[str, ...], list[str]] = {}
    for name, wants in sizing.lacking.items():
        wanted.setdefault(wants, []).append(_words(name))
    lines = [
        f"{', '.join(names)}: "
        + " ".join(f"--{options.get(want, want.replace('_', '-'))}" for want in wants)
        for wants, names in wanted.items()
    ]
    if not lines:
        return doc.section("lacking", "To size more", "All that can be sized is.")
    return doc.section(
        "lacking", "To size more", *map(doc.Paragraph, lines), note="give these as well"
    )


def _by_name(sizing: Sizing) -> dict[str, SizingFigure]:
    return {each.name: each for each in chain.from_iterable(sizing.sections.values())}


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
    return _WRITERS.get(unit, _plain)(value)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else format_count(value)


def _time(seconds: float) -> str:
    return format_duration(seconds) if seconds < 86400 * 2 else f"{seconds / 86400:,.1f} days"


_WRITERS: Final[dict[str, Callable[[float], str]]] = {
    "B": format_bytes,
    "B/s": format_rate,
    "s": _time,
    "1/s": lambda value: f"{format_count(value)}/s",
    "share": format_share,
    "$": "${:,.2f}".format,
    "FLOP": "{:.3g} FLOP".format,
    "FLOP/s": "{:.3g} FLOP/s".format,
}
"""By `SizingFigure.unit`."""


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
    units |= {name: one.unit for name, one in _by_name(sizing).items()}
    names = sorted(each.numbers, key=len, reverse=True)
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names))
    if not pattern.search(each.formula):  # it is written in other words
        return ", ".join(f"{_words(name)} {_written(value, units.get(name, ''))}"
                         for name, value in each.numbers.items())  # fmt: skip
    return pattern.sub(
        lambda match: _written(each.numbers[match[0]], units.get(match[0], "")), each.formula
    )
