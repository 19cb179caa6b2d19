"""The most samples/s that each resource allows, from one run: the pipeline roofline.

Each ceiling is a rate per batch times the samples of a batch. Those of storage say what the run's
makers of batches would get if they did nothing but read, as many requests at a time as they make.
"""

from __future__ import annotations

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.roofline_estimate import receiving_s
from pipeprof.analyze.profile.stall_attribution import WORKER_CPU
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH, CLIENT, LATENCY, StorageBound
from pipeprof.model import Ceiling, RequestStats, Stage
from pipeprof.units import counted, format_bytes, format_duration, format_rate

WORKERS = "workers"
TRANSFER = "transfer"
PIN = "pin"
MAIN = "main"
H2D = "h2d"
ACCELERATOR = "accelerator"


def ceilings(facts: Facts, storage: StorageBound) -> dict[str, Ceiling]:
    """Lowest first. A ceiling whose numbers are not known is left out."""
    if not facts.summary.measured:
        return {}
    found = _of_making(facts) | _of_handing_over(facts)
    if facts.step_s > 0 and facts.diagnosis.has_step:
        found[ACCELERATOR] = _serial(facts, facts.step_s, "a step")
    sums = facts.summary.sums
    if facts.requests is not None and sums["bytes"] and sums["requests"]:
        found |= _of_storage(facts, facts.requests, storage)
    return dict(sorted(found.items(), key=lambda item: item[1].samples_per_s))


def _serial(facts: Facts, seconds: float, what: str) -> Ceiling:
    """Of what is done for one batch after another."""
    return Ceiling(
        facts.samples / seconds, f"{facts.samples:,.0f} samples / {format_duration(seconds)} {what}"
    )


def _of_making(facts: Facts) -> dict[str, Ceiling]:
    found = {}
    if facts.made_s > 0:
        # without workers the main process makes batches, and does not while a step runs
        makers = max(1, facts.workers)
        found[WORKERS] = Ceiling(
            makers * facts.samples / facts.made_s,
            f"{makers} × {facts.samples:,.0f} samples / {format_duration(facts.made_s)} to make a "
            "batch",
        )
    if facts.cpu_s > 0:
        cores = facts.cores_left
        found[WORKER_CPU] = Ceiling(
            cores * facts.samples / facts.cpu_s,
            f"{counted(cores, 'core')} × {facts.samples:,.0f} samples / "
            f"{format_duration(facts.cpu_s)} of CPU a batch{_whose(facts)}",
        )
    return found


def _whose(facts: Facts) -> str:
    """Why not all cores can make batches."""
    ranks, main = facts.environment.ranks, facts.main_cores
    shared = f"shared by {counted(ranks, 'rank')}" if ranks > 1 else ""
    kept = f"{main:.1f} busy with the training process" if main >= 0.05 else ""
    reasons = ", ".join(filter(None, (shared, kept)))
    return f" ({counted(facts.environment.cores, 'core')} {reasons})" if reasons else ""


def _of_handing_over(facts: Facts) -> dict[str, Ceiling]:
    """From the workers to the device: each is done by one thread, for one batch after another."""
    found = {}
    received_s = max(0.0, receiving_s(facts)) if facts.workers else 0.0
    pinned_s, copied_s = facts.stage_s(Stage.PIN), facts.stage_s(Stage.H2D)
    picked_s = facts.per_batch(facts.summary.sums["sampler_s"])
    if received_s > 0:
        found[TRANSFER] = _serial(facts, received_s, "to receive a batch")
    if pinned_s > 0:
        beside = f", beside {format_duration(received_s)} to receive it" if received_s else ""
        found[PIN] = _serial(facts, pinned_s + received_s, f"in the thread that pins{beside}")
        received_s = 0.0
    if picked_s > 0:
        receipt = f", beside {format_duration(received_s)} to receive it" if received_s else ""
        found[MAIN] = _serial(
            facts, picked_s + received_s, f"of the training process, to pick indices{receipt}"
        )
    if copied_s > 0:
        found[H2D] = _serial(facts, copied_s, "to copy a batch to the device")
    return found


def _of_storage(facts: Facts, requests: RequestStats, storage: StorageBound) -> dict[str, Ceiling]:
    samples, sums = facts.samples, facts.summary.sums
    size, per_batch = sums["bytes"] / sums["samples"], facts.per_batch(sums["requests"])
    makers = max(1, facts.workers)
    at_once = makers * requests.at_once
    beside = f"{counted(at_once, 'request')} at a time"
    found = {}
    if storage.bandwidth > 0:
        moved = at_once * storage.bandwidth
        found[BANDWIDTH] = Ceiling(
            moved / size, f"{beside}, {format_rate(moved)} in all / {format_bytes(size)} a sample"
        )
    if storage.latency_s > 0:
        found[LATENCY] = Ceiling(
            at_once * samples / (per_batch * storage.latency_s),
            f"{beside} × {samples:,.0f} samples / {counted(per_batch, 'request')} of "
            f"{format_duration(storage.latency_s)} each",
        )
    if storage.part == CLIENT and requests.client_cpu_s:
        cpu_s = requests.client_cpu_s * per_batch
        found[CLIENT] = Ceiling(
            makers * samples / cpu_s,
            f"{makers} × {samples:,.0f} samples / {format_duration(cpu_s)} of the client's CPU",
        )
    return found
