"""Simulate the cluster that a sheet describes."""

from __future__ import annotations

from math import inf
from typing import Final

from pipeprof.model import SizingFigure
from pipeprof.sizing.cluster import SEEDS, STEPS, WARMUP, Cluster, most_nodes, simulate_cluster
from pipeprof.sizing.sheet import Sheet

SIMULATED: Final = "The cluster, simulated"
_FORMULA: Final = (
    f"{STEPS - WARMUP} steps, each begun when the last node has its data; {len(SEEDS)} seeds"
)
_SOURCE: Final = "pipeprof, docs/guides/size.md."
_NEEDS: Final = (
    "nodes", "gpus_per_node", "batch_size", "step_s", "bytes_per_sample", "physical_share",
    "storage_bandwidth", "target_au",
)  # fmt: skip
_USED_IF_KNOWN: Final = ("client_bandwidth", "first_byte_s", "prefetch_factor", "read_spread",
                         "step_spread")  # fmt: skip
_NAMES: Final = ("simulated_au", "simulated_starved_fraction", "simulated_straggler_share",
                 "simulated_nodes_fed")  # fmt: skip


def simulated(sheet: Sheet) -> tuple[tuple[SizingFigure, ...], dict[str, tuple[str, ...]]]:
    """Return the figures; or none, and the missing inputs of each."""
    if missing := sheet.missing(*_NEEDS):
        return (), dict.fromkeys(_NAMES, missing)
    known = sheet.values(*_NEEDS, *_USED_IF_KNOWN)
    cluster = _cluster(known)
    run = simulate_cluster(cluster)
    fed = most_nodes(cluster, known["target_au"])
    low, high = (f"{each * 100:.1f}" for each in run.au_range)
    found = (
        (run.au, "share", f"Over the seeds from {low} to {high} %."),
        (
            run.starved_fraction,
            "share",
            "Share of the time spent waiting for the last node's data.",
        ),
        (run.straggler_share, "share", "Share of the time spent waiting for the slowest step."),
        (fed, "", "The most nodes that reach the target utilisation."),
    )
    return tuple(
        SizingFigure(name, value, unit, _FORMULA, known, _SOURCE, note)
        for name, (value, unit, note) in zip(_NAMES, found, strict=True)
    ), {}


def _cluster(known: dict[str, float]) -> Cluster:
    a_step = known["gpus_per_node"] * known["batch_size"] * known["bytes_per_sample"]
    return Cluster(
        nodes=int(known["nodes"]),
        step_s=known["step_s"],
        bytes_per_step=a_step * known["physical_share"],
        storage_bandwidth=known["storage_bandwidth"],
        client_bandwidth=known.get("client_bandwidth", inf),
        latency_s=known.get("first_byte_s", 0.0),
        ahead=max(1, int(known["prefetch_factor"])),
        read_spread=known["read_spread"],
        step_spread=known["step_spread"],
    )
