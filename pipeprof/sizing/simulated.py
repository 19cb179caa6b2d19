"""The cluster that a sheet describes, run in simulated time."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Final

from pipeprof.model import SizingFigure
from pipeprof.sizing.cluster import SEEDS, STEPS, WARMUP, Cluster, most_nodes, simulate_cluster
from pipeprof.sizing.sheet import Sheet

SIMULATED: Final = "The cluster, simulated"
_FORMULA: Final = (
    f"{STEPS - WARMUP} steps, each begun when the last node has its data; {len(SEEDS)} seeds"
)
_SOURCE: Final = "pipeprof, docs/storage-teams.md."
_NEEDS: Final = (
    "nodes", "gpus_per_node", "batch_size", "step_s", "bytes_per_sample", "physical_share",
    "storage_bandwidth", "target_au",
)  # fmt: skip
_USED_IF_KNOWN: Final = ("client_bandwidth", "first_byte_s", "prefetch_factor", "read_spread",
                         "step_spread")  # fmt: skip
_NAMES: Final = ("simulated_au", "simulated_starved_fraction", "simulated_straggler_share",
                 "simulated_nodes_fed")  # fmt: skip


def simulated(sheet: Sheet) -> tuple[tuple[SizingFigure, ...], dict[str, tuple[str, ...]]]:
    """The figures; or none, and what they want."""
    wants = tuple(dict.fromkeys(want for name in _NEEDS for want in sheet.wants(name)))
    if wants:
        return (), dict.fromkeys(_NAMES, wants)
    numbers = {name: sheet.value(name) for name in (*_NEEDS, *_USED_IF_KNOWN)}
    known = {name: value for name, value in numbers.items() if value is not None}
    cluster = _cluster(known)
    run = simulate_cluster(cluster)
    fed = most_nodes(cluster, known["target_au"])
    low, high = (f"{each * 100:.1f}" for each in run.au_range)
    told = {
        "simulated_au": (run.au, "share", f"Over the seeds from {low} to {high} %."),
        "simulated_starved_fraction": (
            run.starved_fraction, "share", "Of the time; the last node's data is waited for.",
        ),
        "simulated_straggler_share": (
            run.straggler_share, "share", "Of the time; the slowest node's step is waited for.",
        ),
        "simulated_nodes_fed": (fed, "", "The most that reach the utilisation wanted."),
    }  # fmt: skip
    return tuple(
        SizingFigure(name, value, unit, _FORMULA, known, _SOURCE, note)
        for name, (value, unit, note) in told.items()
    ), {}


def _cluster(known: dict[str, float]) -> Cluster:
    a_step = known["gpus_per_node"] * known["batch_size"] * known["bytes_per_sample"]
    plain = Cluster(
        nodes=int(known["nodes"]),
        step_s=known["step_s"],
        bytes_per_step=a_step * known["physical_share"],
        storage_bandwidth=known["storage_bandwidth"],
    )
    return replace(
        plain,
        client_bandwidth=known.get("client_bandwidth", inf),
        latency_s=known.get("first_byte_s", 0.0),
        ahead=max(1, int(known.get("prefetch_factor", plain.ahead))),
        read_spread=known.get("read_spread", 0.0),
        step_spread=known.get("step_spread", 0.0),
    )
