"""Draw a map: a row of shaded cells for each name."""

from __future__ import annotations

from typing import Final

from pipeprof.report.document.charts import ShareMap
from pipeprof.report.html.charts import vega
from pipeprof.report.html.charts.vega import Datum, Spec
from pipeprof.units import format_share

_HEIGHTS: Final = (26, 9)
"""Pixels of a row where there are few rows, and where there are many."""
_FEW: Final = 16


def cells(data: ShareMap) -> Spec:
    """Draw each share by how dark its cell is."""
    rows: list[Datum] = [
        {
            "name": name, "at": at, "to": at + 1, "share": share,
            "tip": f"{name}: {format_share(share)}",
        }
        for name, shares in data.rows.items()
        for at, share in enumerate(shares)
    ]  # fmt: skip
    columns = max(map(len, data.rows.values()))
    axis = {"labels": False, "ticks": False, "grid": False}
    encoding = {
        "x": vega.quantity("at", data.title, axis, domain=[0, columns], nice=False),
        "x2": {"field": "to"},
        "y": vega.names(rows),
        "fillOpacity": {
            "field": "share", "type": "quantitative", "legend": None,
            "scale": {"domain": [0, 1], "range": [0, 1]},
        },
        "tooltip": vega.TIP,
    }  # fmt: skip
    height = _HEIGHTS[len(data.rows) > _FEW]
    drawn = vega.layer("rect", encoding, fill=vega.ACCENT, stroke="var(--line)", strokeWidth=0.5)
    return vega.chart(rows, layer=[drawn], height=height * len(data.rows))
