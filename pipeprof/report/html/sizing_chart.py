"""What becomes of a cluster as it grows, where that was simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeprof.model import Figure, Sizing
from pipeprof.report.html.vega import ACCENT, DEMAND, Datum, Spec, chart, fixed
from pipeprof.units import format_share

_PARTS: Final = {
    "simulated_au": ("accelerators at work", DEMAND),
    "simulated_straggler_share": ("waiting for the slowest step", "var(--bar)"),
    "simulated_starved_fraction": ("waiting for data", ACCENT),
}
"""Figure → what it is called, its colour. Together they are all of the time."""


def grown(sizings: Sequence[Sizing]) -> Spec | None:
    """A bar for each number of accelerators: what their time goes into. ``None``: not simulated."""
    data: list[Datum] = []
    for sizing in sizings:
        shares = {each.name: each for each in _figures(sizing)}
        if not shares.keys() >= _PARTS.keys():
            return None
        for place, (name, (called, _)) in enumerate(_PARTS.items()):
            share = shares[name].value
            data.append({
                "gpus": f"{sizing.gpus:,.0f}", "part": called, "share": share, "place": place,
                "tip": f"{sizing.gpus:,.0f} GPUs: {format_share(share)} {called}",
            })  # fmt: skip
    order = list(dict.fromkeys(datum["gpus"] for datum in data))
    bars = {
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "gpus", "type": "nominal", "title": "GPUs", "sort": order},
            "x": {"field": "share", "type": "quantitative", "title": "share of their time",
                  "scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 5}},
            "color": fixed("part", dict(_PARTS.values()), legend={"columns": 1}),
            "order": {"field": "place"},
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    return chart(data, layer=[bars], height=34 * len(order))


def _figures(sizing: Sizing) -> list[Figure]:
    return [each for section in sizing.sections.values() for each in section]
