"""A sizing as a page: what so many accelerators must be given, and how each number comes about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from pipeprof.model import Figure, Sizing
from pipeprof.report import terminal_sizing as terminal
from pipeprof.report.html.kept import kept
from pipeprof.report.html.shapes import Chart, Column, Fact, Section, Table, View, row
from pipeprof.report.html.sizing_chart import grown
from pipeprof.units import format_share, listed
from pipeprof.version import __version__

_FACTS: Final = {
    "simulated_au": "AU, simulated",
    "advertised_bandwidth": "storage, as advertised",
    "requests_in_flight": "requests in flight",
    "cores_per_node": "cores a node",
    "node_network": "network of a node",
    "checkpoint_bandwidth": "checkpoints, written",
    "waiting_cost_per_hour": "lost an hour",
}
"""What is asked first of a sizing: figure → label."""
_MOST_FACTS: Final = 4


def sizing_view(sizings: Sequence[Sizing], created: str) -> View:
    """``sizings``: at least one, side by side, the first with what was given to all."""
    first, last = sizings[0], sizings[-1]
    alike = [one for one in sizings if one.what_if == first.what_if]
    simulated = grown(alike)
    sections = [
        kept(f"part-{place}", title, partial(terminal.figures, sizings=sizings, title=title), "")
        for place, title in enumerate(first.sections)
        if any(one.sections[title] for one in sizings)
    ]
    if simulated is not None:
        sections.insert(0, _cluster(alike, simulated))
    gpus = dict.fromkeys(f"{one.gpus:,.0f}" for one in sizings)
    return View(
        title=f"What {listed(list(gpus))} GPUs must be given",
        what="sizing",
        created=created,
        verdicts=(),
        facts=tuple(_facts(last)),
        opening=(),
        sections=(
            *sections,
            _formulas(last),
            kept("taken", "Taken from", partial(terminal.taken, sizing=first), "nothing"),
            kept(
                "asked",
                "To size more",
                partial(terminal.asked, sizing=first),
                "All that can be sized is.",
            ),
        ),
        version=__version__,
    )


def _facts(sizing: Sizing) -> Iterator[Fact]:
    """The first few of those that it has."""
    known = {each.name: each for section in sizing.sections.values() for each in section}
    for name in [name for name in _FACTS if name in known][:_MOST_FACTS]:
        each = known[name]
        note = f"for {terminal.head(sizing)}. {each.note}".strip(" .")
        yield Fact(_FACTS[name], terminal.told(each.value, each.unit), note)


def _cluster(sizings: Sequence[Sizing], spec: dict[str, object]) -> Section:
    data = {
        terminal.head(one): {each.name: each.value for s in one.sections.values() for each in s}
        for one in sizings
    }
    told = "; ".join(
        f"{head}: {format_share(figures['simulated_au'])} at work, "
        f"{format_share(figures['simulated_starved_fraction'])} waiting for data"
        for head, figures in data.items()
    )
    chart = Chart("cluster", "What the accelerators' time goes into", f"{told}.", spec)
    return Section("cluster", "The cluster as it grows", "simulated", (chart,))


def _formulas(sizing: Sizing) -> Section:
    columns = (
        Column("number", right=False), Column("is"), Column("by", right=False, prose=True),
        Column("notes", right=False, prose=True),
    )  # fmt: skip
    rows = tuple(
        row(terminal.words(each.name), terminal.both(each), _by(sizing, each), _source(each))
        for section in sizing.sections.values()
        for each in section
    )
    table = Table("Formulas, with their numbers and sources", columns, rows, cards=True)
    return Section(
        "formulas", "How each number comes about", f"for {terminal.head(sizing)}", (table,)
    )


def _by(sizing: Sizing, each: Figure) -> str:
    formula = each.formula.replace("_", " ")
    return f"{formula} = {terminal.inserted(sizing, each)}" if each.numbers else formula


def _source(each: Figure) -> str:
    return " ".join(part for part in (each.note, f"Source: {each.source}") if part)
