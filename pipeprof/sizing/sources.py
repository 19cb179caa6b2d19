"""Provide the inputs of sizing from a profile, a workload of MLPerf Storage or an accelerator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from pipeprof.analyze.thresholds import LEAST_BYTES_READ
from pipeprof.errors import UsageError
from pipeprof.model import Profile, RequestStats, SizingInput
from pipeprof.sizing.accelerators import ACCELERATORS
from pipeprof.sizing.inputs import BY_NAME
from pipeprof.sizing.mlperf import WORKLOADS, Workload, find_workload

Given = dict[str, SizingInput]
_WORKER_STAGES = ("fetch", "collate")
"""Stages that keep a worker busy."""


def from_workload(workload: str, accelerator: str | None) -> Given:
    """Return the inputs of ``"unet3d"`` on ``"b200"``, or of ``"unet3d/b200"``. Raises `UsageError`
    for an unknown one."""
    found = pick_workload(workload, accelerator)
    columns = found.read_bytes_per_sample
    return _inputs(
        found.origin,
        target_au=found.au_bar,
        batch_size=found.batch_size,
        step_s=found.computation_time_s,
        record_bytes=found.record_bytes,
        bytes_per_sample=found.record_bytes if columns is None else columns,
    )


def pick_workload(workload: str, accelerator: str | None) -> Workload:
    """Return the workload with this name and accelerator. Raises `UsageError` for unknown ones."""
    name = workload if "/" in workload or accelerator is None else f"{workload}/{accelerator}"
    if "/" not in name:
        known = ", ".join(each.accelerator for each in WORKLOADS if each.workload == name)
        if known:
            raise UsageError(f"--workload {name} needs an --accelerator: {known}")
    return find_workload(name)


def from_accelerator(name: str) -> Given:
    """Return the inputs of an accelerator; none where it is only known from a workload. Raises
    `UsageError` for an unknown one."""
    known = ACCELERATORS.keys() | {each.accelerator for each in WORKLOADS}
    if name not in known:
        listed = ", ".join(sorted(known))
        raise UsageError(f"{name!r} is no known accelerator; known are {listed}")
    found = ACCELERATORS.get(name)
    if found is None:
        return {}
    given = _inputs(f"table, {name}", peak_flop_per_s=found.peak_flop_per_s)
    if len(found.memory) == 1:  # of several variants, the right one is unknown
        given |= _inputs(f"table, {name}", accelerator_memory=found.memory[0])
    return given


def from_profile(profile: Profile, file: str) -> Given:
    """Return the inputs that a profile has measured, of samples, workers and the step. Raises
    `UsageError` when it measured no batch."""
    rate = profile.throughput
    if not profile.measured_batches or not rate.batches_per_s > 0 or not rate.samples_per_s > 0:
        raise UsageError(f"{file} measured no batch; profile a longer run")
    samples = rate.samples_per_s / rate.batches_per_s
    worker_s = [profile.stages[name].mean_s for name in _WORKER_STAGES if name in profile.stages]
    cpu, step = profile.resources.get("cpu"), profile.stages.get("step")
    unjudged = profile.diagnosis.unjudged
    values: dict[str, float | None] = {
        "batch_size": samples,
        "step_s": step.mean_s if step and not unjudged else None,
        "bytes_per_sample": rate.bytes_per_s / rate.samples_per_s,
        "worker_s_per_sample": sum(worker_s) / samples,
        "cpu_s_per_sample": cpu.mean_s / samples if cpu else None,
        "prefetch_factor": profile.config.prefetch_factor,
        "tensor_bytes": _mean(profile.batches.batch_bytes, samples),
        "worker_private_bytes": _mean(profile.batches.private_bytes),
        "physical_share": _physical_share(profile),
        "starved_fraction": None if unjudged else profile.diagnosis.starved_fraction,
        "dataset_bytes": profile.source.bytes if profile.source else None,
    }
    if profile.requests is not None:
        values |= _from_requests(profile.requests)
    calls = {} if profile.requests is not None else _from_read_calls(profile, samples)
    return _inputs(f"profile {file}, by read calls", **calls) | _inputs(f"profile {file}", **values)


def from_probe(probe: Mapping[str, Any], file: str) -> Given:
    """Return the inputs that a probe measured: what its storage and one host of it give.

    Args:
        probe: What ``pipeprof probe --json`` printed.
        file: Its file, as the origin of the inputs.

    Raises:
        UsageError: It is no result of a probe, or too few requests ended to show a limit.
    """
    try:
        limits = probe["pipeprof probe"]["limits"]
        if limits is None:
            raise UsageError(f"{file}: too few requests ended to show a limit; probe for longer")
        host = float(limits["bytes_per_s"])
        reads = [(float(job["job options"]["bs"]), job["read"]["clat_ns"]["mean"] / 1e9)
                 for job in probe["jobs"]
                 if job["job options"]["rw"] == "randread"
                 and job["job options"]["numjobs"] == "1"]  # fmt: skip
        curve = probe["hosts"]["bandwidth"] if "hosts" in probe else None
        values = {"client_bandwidth": curve["per_host"]["value"] if curve else host}
        if curve and curve["total"]:
            values["storage_bandwidth"] = curve["total"]["value"]
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{file} is no result of `pipeprof probe --json`") from None
    return _inputs(f"probe {file}", **values, **_request_of(reads))


def _request_of(reads: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return latency and bandwidth of a single request, by its seconds for the smallest and the
    largest size."""
    (small, small_s), (large, large_s) = (min(reads), max(reads)) if reads else ((0, 0), (0, 0))
    if large_s <= small_s:
        return {}
    bandwidth = (large - small) / (large_s - small_s)
    return {"stream_bandwidth": bandwidth, "first_byte_s": max(0.0, small_s - small / bandwidth)}


def _from_requests(requests: RequestStats) -> dict[str, float]:
    """Return the figures of a request, as measured with the run's concurrency."""
    fit, size = requests.fit, {"request_bytes": requests.size.mean}
    if fit is not None and fit.bandwidth and fit.latency_intercept_s > 0:
        return size | {"first_byte_s": fit.latency_intercept_s, "stream_bandwidth": fit.bandwidth}
    return size | {"request_s": requests.latency_s.mean}


def _from_read_calls(profile: Profile, samples: float) -> dict[str, float | None]:
    """Return the bytes of the workers' read calls; used where no requests were recorded."""
    read, calls = (_mean(column) for column in (profile.batches.logical_bytes,
                                                profile.batches.syscalls))  # fmt: skip
    if read is None or read < LEAST_BYTES_READ:
        return {}
    return {"bytes_per_sample": read / samples, "request_bytes": read / calls if calls else None}


def _mean(column: tuple[float | None, ...], divisor: float = 1.0) -> float | None:
    known = [value for value in column if value is not None]
    return sum(known) / len(known) / divisor if known else None


def _physical_share(profile: Profile) -> float | None:
    """Return the share of the bytes read that devices moved, 0..1; read-ahead may move more."""
    batches = profile.batches
    pairs = zip(batches.logical_bytes, batches.physical_bytes, strict=False)
    known = [(read, moved) for read, moved in pairs if read and moved is not None]
    if profile.cache.state not in ("cold", "warm", "mixed") or not known:
        return None
    return min(1.0, sum(moved for _, moved in known) / sum(read for read, _ in known))


def _inputs(origin: str, **values: float | None) -> Given:
    """Return the values that are known and not 0 as inputs from ``origin``."""
    known = {name: value for name, value in values.items() if value and isfinite(value)}
    return {name: BY_NAME[name].checked(value, origin) for name, value in known.items()}
