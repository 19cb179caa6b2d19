"""Build the parts that all charts share, in Vega-Lite's terms.

Colours are CSS variables of the page, so they follow its light or dark theme. They are the palette
of Okabe and Ito, which colour-blind people can distinguish. Nothing is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Spec = dict[str, Any]
Datum = dict[str, Any]

ACCENT: Final = "var(--accent)"
"""The colour of the lowest ceiling and of all waiting."""
DEMAND: Final = "var(--step)"

CONFIG: Final[Spec] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink)", "titleColor": "var(--quiet)", "gridColor": "var(--line)",
        "domainColor": "var(--line)", "tickColor": "var(--line)", "labelFontSize": 12,
        "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 150,
    },
    "legend": {
        "labelColor": "var(--ink)", "titleColor": "var(--quiet)", "labelFontSize": 12,
        "orient": "top", "title": None, "symbolType": "square", "columns": 4, "labelLimit": 220,
    },
    "text": {"fill": "var(--ink)", "fontSize": 12},
}  # fmt: skip
"""The configuration of every chart."""

SECONDS: Final = (
    "datum.value == 0 ? '0' : abs(datum.value) >= 1 ? format(datum.value, '~g') + ' s' : "
    "abs(datum.value) >= 0.001 ? format(datum.value * 1e3, '~g') + ' ms' : "
    "format(datum.value * 1e6, '~g') + ' µs'"
)
"""The label expression of an axis of seconds: ``1.5 ms``."""

COUNTS: Final = "format(datum.value, '~s')"
"""The label expression of an axis of rates or counts: ``1.5k``."""
TIP: Final[Spec] = {"field": "tip"}


def chart(data: Sequence[Datum], **more: Any) -> Spec:
    """Return a chart of ``data`` that is as wide as its container."""
    return {
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": list(data)},
        **more,
    }


def layer(mark: str, encoding: Spec, only: str = "", **style: Any) -> Spec:
    """Draw one mark per datum, or only where the expression ``only`` holds."""
    filtered = {"transform": [{"filter": only}]} if only else {}
    return {**filtered, "mark": {"type": mark, **style}, "encoding": encoding}


def quantity(field: str, title: str | None, axis: Spec, **scale: Any) -> Spec:
    """Return an axis of numbers."""
    return {
        "field": field, "type": "quantitative", "title": title, "axis": axis, "scale": scale,
    }  # fmt: skip


def samples(field: str, most: float, ticks: int = 5) -> Spec:
    """Return an axis of samples/s from 0 to ``most``."""
    axis = {"labelExpr": COUNTS, "tickCount": ticks}
    return quantity(field, "samples/s", axis, domain=[0, most or 1], nice=False)


def names(data: Sequence[Datum]) -> Spec:
    """Return an axis of names in the order of ``data``."""
    order = list(dict.fromkeys(datum["name"] for datum in data))
    return {"field": "name", "type": "nominal", "title": None, "sort": order,
            "axis": {"ticks": False, "domain": False, "labelOverlap": True}}  # fmt: skip


def demand_at(samples_per_s: float | None, axis: str) -> list[Spec]:
    """Draw a line at the accelerator's demand; nothing if that is unknown."""
    if not samples_per_s:
        return []
    place = {axis: {"field": "demand", "type": "quantitative"}}
    line = layer("rule", place, stroke=DEMAND, strokeDash=[5, 3], strokeWidth=2)
    return [{"data": {"values": [{"demand": samples_per_s}]}, **line}]


def fixed(field: str, signs: Mapping[str, str], legend: Spec | None = None) -> Spec:
    """Map each value of ``field`` to a colour or shape; there is no legend without ``legend``."""
    scale = {"domain": list(signs), "range": list(signs.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}
