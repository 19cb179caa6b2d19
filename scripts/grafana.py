"""Write the Grafana dashboard for the figures that pipeprof exports to Prometheus.

python -m scripts.grafana docs/grafana.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FILTER = '{loader=~"$loader"}'
RATE = "[$__rate_interval]"
WAIT = f"rate(pipeprof_wait_seconds_total{FILTER}{RATE})"
PANELS = (
    (
        "Share of the time that the accelerator waits",
        "percentunit",
        f"{WAIT} / rate(pipeprof_cycle_seconds_total{FILTER}{RATE})",
        "{{loader}} {{rank}}",
    ),
    (
        "Samples per second",
        "short",
        f"rate(pipeprof_samples_total{FILTER}{RATE})",
        "{{loader}} {{rank}}",
    ),
    (
        "What it waits for",
        "percentunit",
        f"avg by (cause) (pipeprof_blame{FILTER})",
        "{{cause}}",
    ),
    (
        "Mean time of a stage per batch",
        "s",
        f"avg by (stage) (pipeprof_stages_mean_s{FILTER})",
        "{{stage}}",
    ),
    ("Batches that are ready", "short", f"pipeprof_queue_mean{FILTER}", "{{loader}} {{rank}}"),
    (
        "Share of the time in pauses: validation, checkpoints",
        "percentunit",
        f"rate(pipeprof_pause_seconds_total{FILTER}{RATE})",
        "{{loader}} {{rank}}",
    ),
)
"""Title, unit, query and legend of each panel."""
_WIDTH, _HEIGHT = 12, 8


def dashboard() -> dict[str, Any]:
    """Return the dashboard in Grafana's JSON model."""
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "title": "pipeprof: data loading",
        "uid": "pipeprof",
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [
            {"name": "source", "type": "datasource", "query": "prometheus"},
            {"name": "loader", "type": "query", "datasource": source, "multi": True,
             "includeAll": True, "query": "label_values(pipeprof_batches_total, loader)"},
        ]},
        "panels": [
            {
                "id": number + 1, "type": "timeseries", "title": title, "datasource": source,
                "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT,
                            "w": _WIDTH, "h": _HEIGHT},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [{"refId": "A", "expr": query, "legendFormat": legend}],
            }
            for number, (title, unit, query, legend) in enumerate(PANELS)
        ],
    }  # fmt: skip


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(dashboard(), indent=1) + "\n")
