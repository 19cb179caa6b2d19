"""Compute the most samples/s that each resource allows, from one run: the pipeline roofline.

Each ceiling is a rate in batches/s times the samples of a batch. The ceilings of storage are the
rates of the run's workers if they did nothing but read, with their present number of concurrent
requests.
"""

from __future__ import annotations

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import receiving_s
from pipeprof.analyze.profile.stall_attribution import PIPELINE, WORKER_CPU
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, CLIENT, LATENCY, StorageBound
from pipeprof.model import RequestStats, Stage

WORKERS = "workers"
TRANSFER = "transfer"
PIN = "pin"
MAIN = "main"
H2D = "h2d"
ACCELERATOR = "accelerator"

Limit = tuple[float, Figures]
"""Samples/s, and those figures of its formula that `Facts` does not have."""


def limits(facts: Facts, storage: StorageBound) -> dict[str, Limit]:
    """Return the limit of each resource, lowest first, without those that are unknown."""
    if not facts.summary.measured:
        return {}
    found = _worker_limits(facts) | _hand_over_limits(facts)
    bound = facts.summary.charges.busiest
    if bound is not None and bound.known_by == "busy" and facts.rate > 0:
        figures = {"stage": bound.stage.name, "busy": bound.share}
        found[PIPELINE] = facts.rate / bound.share, figures
    diagnosis = facts.diagnosis
    if facts.step_s > 0 and diagnosis.has_step and not diagnosis.unjudged:
        found[ACCELERATOR] = facts.samples / facts.step_s, {}
    sums = facts.summary.sums
    if facts.requests is not None and sums["bytes"] and sums["requests"]:
        found |= _storage_limits(facts, facts.requests, storage)
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def _worker_limits(facts: Facts) -> dict[str, Limit]:
    found: dict[str, Limit] = {}
    # without workers the main process builds batches, though not during a step
    builders = max(1, facts.workers)
    if facts.made_s > 0:
        found[WORKERS] = builders * facts.samples / facts.made_s, {"builders": builders}
    if facts.cpu_s > 0:
        found[WORKER_CPU] = facts.cores_rate, {"shared": facts.environment.ranks > 1}
    return found


def _hand_over_limits(facts: Facts) -> dict[str, Limit]:
    """Return the limits from workers to device, each of one thread that takes batch after batch."""
    found: dict[str, Limit] = {}
    samples, received_s = facts.samples, max(0.0, receiving_s(facts)) if facts.workers else 0.0
    pinned_s, copied_s = facts.stage_s(Stage.PIN), facts.stage_s(Stage.H2D)
    picked_s = facts.per_batch(facts.summary.sums["sampler_s"])
    if received_s > 0:
        found[TRANSFER] = samples / received_s, {"seconds": received_s}
    if pinned_s > 0:
        seconds = pinned_s + received_s
        found[PIN] = samples / seconds, {"seconds": seconds, "receive_s": received_s or None}
        received_s = 0.0
    if picked_s > 0:
        seconds = picked_s + received_s
        found[MAIN] = samples / seconds, {"seconds": seconds, "receive_s": received_s or None}
    if copied_s > 0:
        found[H2D] = samples / copied_s, {"seconds": copied_s}
    return found


def _storage_limits(
    facts: Facts, requests: RequestStats, storage: StorageBound
) -> dict[str, Limit]:
    samples, sums = facts.samples, facts.summary.sums
    size, per_batch = sums["bytes"] / sums["samples"], facts.requests_per_batch
    builders = max(1, facts.workers)
    at_once = builders * requests.at_once
    found: dict[str, Limit] = {}
    if storage.bandwidth > 0:
        moved = at_once * storage.bandwidth
        found[BANDWIDTH] = moved / size, {"at_once": at_once, "moved": moved, "size": size}
    if storage.latency_s > 0:
        figures = {"at_once": at_once, "latency_s": storage.latency_s}
        found[LATENCY] = at_once * samples / (per_batch * storage.latency_s), figures
    if storage.part == CLIENT and requests.client_cpu_s:
        cpu_s = requests.client_cpu_s * per_batch
        found[CLIENT] = builders * samples / cpu_s, {"builders": builders, "client_s": cpu_s}
    return found
