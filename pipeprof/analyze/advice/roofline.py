"""The most samples/s that each resource allows, from one run: the pipeline roofline.

Each ceiling is a rate per batch times the samples of a batch. Those of storage say what the run's
makers of batches would get if they did nothing but read, as many requests at a time as they make.
"""

from __future__ import annotations

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import receiving_s
from pipeprof.analyze.profile.stall_attribution import WORKER_CPU
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, CLIENT, LATENCY, StorageBound
from pipeprof.model import RequestStats, Stage

WORKERS = "workers"
TRANSFER = "transfer"
PIN = "pin"
MAIN = "main"
H2D = "h2d"
ACCELERATOR = "accelerator"

Limit = tuple[float, Figures]
"""Samples/s, and the figures of its formula beside those of the whole run."""


def limits(facts: Facts, storage: StorageBound) -> dict[str, Limit]:
    """Of each resource, lowest first. One whose numbers are not known is left out."""
    if not facts.summary.measured:
        return {}
    found = _of_workers(facts) | _of_handing_over(facts)
    if facts.step_s > 0 and facts.diagnosis.has_step:
        found[ACCELERATOR] = facts.samples / facts.step_s, {}
    sums = facts.summary.sums
    if facts.requests is not None and sums["bytes"] and sums["requests"]:
        found |= _of_storage(facts, facts.requests, storage)
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def _of_workers(facts: Facts) -> dict[str, Limit]:
    found: dict[str, Limit] = {}
    # without workers the main process makes batches, and does not while a step runs
    makers = max(1, facts.workers)
    if facts.made_s > 0:
        found[WORKERS] = makers * facts.samples / facts.made_s, {"makers": makers}
    if facts.cpu_s > 0:
        found[WORKER_CPU] = facts.cores_rate, {"shared": facts.environment.ranks > 1}
    return found


def _of_handing_over(facts: Facts) -> dict[str, Limit]:
    """From the workers to the device: each is done by one thread, for one batch after another."""
    found: dict[str, Limit] = {}
    samples, received_s = facts.samples, max(0.0, receiving_s(facts)) if facts.workers else 0.0
    pinned_s, copied_s = facts.stage_s(Stage.PIN), facts.stage_s(Stage.H2D)
    picked_s = facts.per_batch(facts.summary.sums["sampler_s"])
    if received_s > 0:
        found[TRANSFER] = samples / received_s, {"seconds": received_s}
    if pinned_s > 0:
        seconds = pinned_s + received_s
        found[PIN] = samples / seconds, {"seconds": seconds, "receipt_s": received_s or None}
        received_s = 0.0
    if picked_s > 0:
        seconds = picked_s + received_s
        found[MAIN] = samples / seconds, {"seconds": seconds, "receipt_s": received_s or None}
    if copied_s > 0:
        found[H2D] = samples / copied_s, {"seconds": copied_s}
    return found


def _of_storage(facts: Facts, requests: RequestStats, storage: StorageBound) -> dict[str, Limit]:
    samples, sums = facts.samples, facts.summary.sums
    size, per_batch = sums["bytes"] / sums["samples"], facts.requests_per_batch
    makers = max(1, facts.workers)
    at_once = makers * requests.at_once
    found: dict[str, Limit] = {}
    if storage.bandwidth > 0:
        moved = at_once * storage.bandwidth
        found[BANDWIDTH] = moved / size, {"at_once": at_once, "moved": moved, "size": size}
    if storage.latency_s > 0:
        figures = {"at_once": at_once, "latency_s": storage.latency_s}
        found[LATENCY] = at_once * samples / (per_batch * storage.latency_s), figures
    if storage.part == CLIENT and requests.client_cpu_s:
        cpu_s = requests.client_cpu_s * per_batch
        found[CLIENT] = makers * samples / cpu_s, {"makers": makers, "client_s": cpu_s}
    return found
