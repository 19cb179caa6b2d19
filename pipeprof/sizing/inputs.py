"""Define the inputs of sizing: names in formulas, options, bounds and default assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Final, Literal

from pipeprof.errors import UsageError
from pipeprof.model import SizingInput

Kind = Literal["count", "size", "rate", "share", "ms", "s", "hours", "flop", "flop/s", "$"]
"""How users write a number: ``70B``, ``8MiB``, ``85MB`` (a second), ``90%``, ``25`` …"""

_UNITS: Final = {
    "count": "", "size": "B", "rate": "B/s", "share": "share", "ms": "s", "s": "s", "hours": "s",
    "flop": "FLOP", "flop/s": "FLOP/s", "$": "$",
}  # fmt: skip
_SCALES: Final = {"ms": 1e-3, "hours": 3600.0}


@dataclass(frozen=True)
class Input:
    """One number that a user may give."""

    name: str
    """The name in the formulas."""
    option: str
    """The command line option, without its dashes."""
    kind: Kind
    meaning: str
    """The help of the option."""
    assumed: float | None = None
    """Default value in the base unit; ``None`` where there is no default."""
    why: str = ""
    """Source of the default."""
    may_be_zero: bool = False
    most: float = inf
    """Largest possible value."""

    @property
    def unit(self) -> str:
        """The base unit, as in `SizingInput`."""
        return "1/s" if self.name == "samples_per_s" else _UNITS[self.kind]

    def base(self, written: float) -> float:
        """Convert a number of the command line to the base unit."""
        return written * _SCALES.get(self.kind, 1.0)

    def checked(self, value: float, origin: str) -> SizingInput:
        """Return ``value``, in the base unit, as an input; `UsageError` when it is impossible."""
        if not isfinite(value) or value < 0 or value > self.most:
            most = f" to {self.most:g}" if isfinite(self.most) else " and more"
            raise UsageError(f"--{self.option} is {value:g}; it can be 0{most}: {self.meaning}")
        if value == 0 and not self.may_be_zero:
            raise UsageError(f"--{self.option} is 0; it must be more: {self.meaning}")
        return SizingInput(self.name, value, self.unit, origin)


def _share(name: str, meaning: str, assumed: float | None = None, why: str = "",
           may_be_zero: bool = False) -> Input:  # fmt: skip
    return Input(name, name.replace("_", "-"), "share", meaning, assumed, why, may_be_zero, 1.0)


INPUTS: Final = (
    Input("gpus_per_node", "gpus-per-node", "count", "accelerators per host"),
    _share("target_au", "required accelerator utilisation", 0.9, "MLPerf Storage's usual bar"),
    Input("batch_size", "batch-size", "count", "samples per step of one accelerator"),
    Input("step_s", "step-ms", "ms", "time of a training step on one batch"),
    Input("samples_per_s", "samples-per-s", "count", "rate of an accelerator that never waits"),
    Input("bytes_per_sample", "bytes-per-sample", "size", "bytes read from storage per sample"),
    Input("record_bytes", "record-bytes", "size", "size of a sample on storage, all columns"),
    _share("physical_share", "share of reads that caches do not serve", 1.0, "nothing is cached",
           may_be_zero=True),
    _share("cache_hit_share", "share of those reads that a cache on each node's disk serves",
           may_be_zero=True),
    _share("usable_share", "share of the advertised performance that is reached", 0.8,
           "ML Engineering, the AI battlefield"),
    Input("request_bytes", "request-bytes", "size", "size of a request"),
    Input("first_byte_s", "first-byte-ms", "ms", "latency of a request", may_be_zero=True),
    Input("stream_bandwidth", "stream-bandwidth", "rate", "bytes/s of one request"),
    Input("request_s", "request-ms", "ms", "time of a whole request, instead of the previous two"),
    Input("s3_requests_per_prefix", "s3-requests-per-prefix", "count",
          "maximum GET requests/s per prefix", 5500, "AWS, performance guidelines"),
    Input("storage_bandwidth", "storage-bandwidth", "rate", "bytes/s of the existing storage"),
    Input("client_bandwidth", "client-bandwidth", "rate", "maximum bytes/s of one host"),
    _share("read_spread", "relative standard deviation of read times; for --simulate", 0.0,
           "all reads are alike", may_be_zero=True),
    _share("step_spread", "relative standard deviation of step times; for --simulate", 0.0,
           "all steps are alike", may_be_zero=True),
    Input("sync_s", "sync-ms", "ms", "time to exchange gradients, beyond the profile's steps; for "
          "--simulate", 0.0, "the profile's steps hold it", may_be_zero=True),
    Input("dataset_samples", "dataset-samples", "count", "samples in the data set"),
    Input("dataset_bytes", "dataset-bytes", "size", "size of the data set on storage"),
    _share("usable_capacity", "usable share of a file system's capacity", 0.8, "common practice"),
    Input("worker_s_per_sample", "worker-ms-per-sample", "ms", "time of a worker per sample"),
    Input("cpu_s_per_sample", "cpu-ms-per-sample", "ms", "CPU time of a worker per sample"),
    Input("prefetch_factor", "prefetch", "count", "batches prefetched per worker", 2,
          "torch's default"),
    Input("tensor_bytes", "tensor-bytes", "size", "size of a sample in RAM"),
    Input("worker_private_bytes", "worker-memory", "size", "private memory of a worker"),
    Input("page_cache_bytes", "page-cache", "size", "memory for caching files", 0.0,
          "no file is read twice", may_be_zero=True),
    Input("node_ram", "node-ram", "size", "memory of a host"),
    Input("accelerator_memory", "accelerator-memory", "size", "memory of an accelerator"),
    Input("parameters", "parameters", "count", "parameters of the model, e.g. 70B"),
    Input("gradient_bytes", "gradient-bytes", "size", "bytes of gradient per parameter", 2,
          "16-bit gradients"),
    Input("checkpoint_bytes_per_parameter", "checkpoint-bytes-per-parameter", "size",
          "bytes of weights and optimizer per parameter", 14, "MLPerf Storage v2.0"),
    Input("checkpoint_s", "checkpoint-s", "s", "maximum time to write a checkpoint"),
    Input("device_mtbf_s", "device-mtbf-hours", "hours", "mean time between failures of a device"),
    Input("flop_per_sample", "flop-per-sample", "flop", "FLOP per sample, forward and backward"),
    Input("peak_flop_per_s", "peak-flop-per-s", "flop/s", "peak FLOP/s of one accelerator"),
    Input("training_flop", "training-flop", "flop", "FLOP of the whole training"),
    _share("starved_fraction", "share of the time that accelerators wait for data",
           may_be_zero=True),
    Input("price_per_gpu_hour", "price-per-gpu-hour", "$", "price of one accelerator per hour"),
)  # fmt: skip
BY_NAME: Final = {each.name: each for each in INPUTS}
