"""Sizings for a terminal: a table with a column for each number of accelerators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TextIO, TypeAlias

from pipeprof.model import Figure, Sizing
from pipeprof.report.layout import Column, Page
from pipeprof.report.terminal import WIDTH, print_page
from pipeprof.sizing.inputs import BY_NAME
from pipeprof.units import format_bytes, format_count, format_duration, format_rate, format_share

_Told: TypeAlias = tuple[str, list[str]]
"""A column: its title, its cells."""
_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB")


def print_sizings(sizings: Sequence[Sizing], explain: bool, file: TextIO | None = None) -> None:
    """Side by side, as what is on the other side can show it."""
    print_page(lambda _, width: render_sizings(sizings, explain=explain, width=width), file)


def render_sizings(sizings: Sequence[Sizing], *, explain: bool, width: int = WIDTH) -> str:
    page = Page(width, color=False)
    write_sizings(page, sizings, explain)
    return page.text()


def write_sizings(page: Page, sizings: Sequence[Sizing], explain: bool) -> None:
    """On any kind of page."""
    for title in sizings[0].sections:
        figures(page, sizings, title)
    taken(page, sizings[0])
    if explain:
        explained(page, sizings[0])
    asked(page, sizings[0])


def figures(page: Page, sizings: Sequence[Sizing], title: str) -> None:
    """A row for each number of the section, if there are any."""
    names = list(dict.fromkeys(each.name for one in sizings for each in one.sections[title]))
    if not names:
        return
    page.heading(title)
    rows = [words(name) for name in names]
    columns = [(head(one), _column(one, title, names)) for one in sizings]
    for place, part in enumerate(_parts(columns, page.width - 2 - max(map(len, rows)))):
        if place:
            page.gap()
        page.table(
            [Column("", right=False), *(Column(titled) for titled, _ in part)],
            zip(rows, *(cells for _, cells in part), strict=True),
        )


def taken(page: Page, sizing: Sizing) -> None:
    page.heading("Taken from")
    page.pairs(
        (words(each.name), f"{told(each.value, each.unit)}, {each.origin}")
        for each in sizing.inputs
        if each.name != "gpus"
    )


def told(value: float, unit: str) -> str:
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


def binary(value: float) -> str:
    """``"3.64 TiB"``."""
    for power, unit in enumerate(_BINARY, start=1):
        if value < 1024 ** (power + 1) or unit == _BINARY[-1]:
            return f"{value / 1024**power:.3g} {unit}"
    raise AssertionError("unreachable")


def head(sizing: Sizing) -> str:
    gpus = f"{sizing.gpus:,.0f} GPUs"
    return f"{gpus}, {sizing.what_if}" if sizing.what_if else gpus


def _column(sizing: Sizing, title: str, names: Sequence[str]) -> list[str]:
    known = {each.name: told(each.value, each.unit) for each in sizing.sections[title]}
    return [known.get(name, "") for name in names]


def _parts(columns: Sequence[_Told], room: int) -> Iterator[list[_Told]]:
    """As many side by side as there is room for; all where a page has no width."""
    part: list[_Told] = []
    used = 0
    for titled, cells in columns:
        width = 2 + max(map(len, (titled, *cells)))
        if part and used + width > room > 0:
            yield part
            part, used = [], 0
        part.append((titled, cells))
        used += width
    yield part


_CAPITALS = {"s3": "S3", "ram": "RAM", "mfu": "MFU", "mtbf": "MTBF", "gpu": "GPU", "gpus": "GPUs",
             "au": "AU", "flop": "FLOP"}  # fmt: skip
_ENDINGS = ((r"_per_s$", ""), (r"_(interval|mtbf)_s$", r"_\1"), (r"_s$", "_time"),
            (r"_bytes$", "_size"))  # fmt: skip


def words(name: str) -> str:
    """``requests_per_s`` → ``requests``, ``staging_s`` → ``staging time``."""
    for ending, instead in _ENDINGS:
        shorter = re.sub(ending, instead, name)
        if shorter != name:
            name = shorter
            break
    return " ".join(_CAPITALS.get(word, word) for word in name.split("_"))


def explained(page: Page, sizing: Sizing) -> None:
    page.heading("How each number comes about", f"for {head(sizing)}")
    for section in sizing.sections.values():
        for each in section:
            page.gap()
            page.line(f"{words(each.name)} = {both(each)}")
            page.line(f"= {each.formula.replace('_', ' ')}", indent=4)
            if each.numbers:
                page.line(f"= {inserted(sizing, each)}", indent=4)
            page.line(" ".join(part for part in (each.note, f"Source: {each.source}") if part), 4)


def both(each: Figure) -> str:
    """SI, and for sizes binary too."""
    plain = told(each.value, each.unit)
    if each.unit not in ("B", "B/s") or each.value < 1024:
        return plain
    return f"{plain} ({binary(each.value)}{each.unit[1:]})"


def inserted(sizing: Sizing, each: Figure) -> str:
    """The formula, with numbers in the place of their names."""
    units = {one.name: one.unit for one in sizing.inputs}
    units |= {one.name: one.unit for section in sizing.sections.values() for one in section}
    names = sorted(each.numbers, key=len, reverse=True)
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names))
    if not pattern.search(each.formula):  # it is not told in their names
        return ", ".join(f"{words(name)} {told(value, units.get(name, ''))}"
                         for name, value in each.numbers.items())  # fmt: skip
    return pattern.sub(
        lambda match: told(each.numbers[match[0]], units.get(match[0], "")), each.formula
    )


def asked(page: Page, sizing: Sizing) -> None:
    """For what is not known."""
    wanted: dict[tuple[str, ...], list[str]] = {}
    for name, wants in sizing.lacking.items():
        wanted.setdefault(wants, []).append(words(name))
    if not wanted:
        return
    page.heading("To size more", "give these as well")
    for wants, names in wanted.items():
        page.line(f"{', '.join(names)}: {' '.join(f'--{want}' for want in _options(wants))}")


def _options(wants: Sequence[str]) -> list[str]:
    return [BY_NAME[want].option if want in BY_NAME else want.replace("_", "-") for want in wants]
