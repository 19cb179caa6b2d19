"""Define every formula of sizing. The text that is shown is also what is evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from types import CodeType
from typing import Final


@dataclass(frozen=True)
class Formula:
    """A number that follows from others."""

    name: str
    unit: str
    """The unit, as in `pipeprof.model.SizingFigure`."""
    text: str
    """The arithmetic in names of numbers, with ⌈rounding up⌉ and √(roots)."""
    source: str = "definition."
    note: str = ""
    """Explanation of the number."""
    unlimited_without: str = ""
    """The number that limits this one: where it is 0, nothing does, and there is no figure."""

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Names of the numbers in the formula, in their order."""
        return tuple(name for name in self._code.co_names if name not in _FUNCTIONS)

    def __call__(self, **numbers: float) -> float:
        """Return the value for ``numbers``, each in its base unit."""
        value: float = eval(self._code, {"__builtins__": _FUNCTIONS}, numbers)
        return value

    @cached_property
    def _code(self) -> CodeType:
        return compile(self.text.translate(_PYTHON), self.name, "eval")


def _rounded_up(value: float) -> int:
    """Round up to a whole number, at least 1, but ignore errors of floating point."""
    return max(1, ceil(round(value, 9)))


_FUNCTIONS: Final = {"rounded_up": _rounded_up, "sqrt": sqrt, "max": max}
_PYTHON: Final = str.maketrans({"×": "*", "⌈": "rounded_up(", "⌉": ")", "√": "sqrt"})

STORAGE: Final = (
    Formula("samples_per_s", "1/s", "batch_size / step_s",
            "MLPerf Storage, which emulates an accelerator by its step.",
            "The rate of one accelerator that never waits."),
    Formula("read_bandwidth", "B/s", "gpus × samples_per_s × bytes_per_sample × target_au",
            "MLPerf Storage, required read bandwidth.",
            "Requested from storage by all readers together (logical)."),
    Formula("read_bandwidth_per_gpu", "B/s", "read_bandwidth / gpus"),
    Formula("physical_bandwidth", "B/s", "read_bandwidth × physical_share",
            "definition; the share is physical bytes / logical bytes of a profile.",
            "What caches do not hold must come from devices."),
    Formula("advertised_bandwidth", "B/s", "physical_bandwidth / usable_share",
            "ML Engineering (the AI battlefield): count on 80 % of what is advertised.",
            "The bandwidth that the data sheet must state."),
    Formula("requests_per_s", "1/s", "read_bandwidth / request_bytes"),
    Formula("request_s", "s", "first_byte_s + request_bytes / stream_bandwidth",
            "the usual linear model of a request; `pipeprof probe` measures both figures."),
    Formula("requests_in_flight", "", "⌈requests_per_s × request_s⌉",
            "Little's law, J. D. C. Little, Operations Research 9 (1961)."),
    Formula("s3_prefixes", "", "⌈requests_per_s / s3_requests_per_prefix⌉",
            "AWS, Best practices design patterns: 5,500 GET a second and prefix."),
    Formula("dataset_bytes", "B", "dataset_samples × record_bytes"),
    Formula("dataset_capacity", "B", "dataset_bytes / usable_capacity",
            "common practice: file systems slow down when they are more than 80 % full."),
    Formula("staging_s", "s", "dataset_bytes / storage_bandwidth",
            note="To copy the data set from that storage once, as to local NVMe."),
    Formula("epoch_s", "s", "dataset_samples / (gpus × samples_per_s × target_au)"),
    Formula("gpus_fed", "",
            "storage_bandwidth / (samples_per_s × bytes_per_sample × target_au × physical_share)",
            "MLPerf Storage, required read bandwidth, solved for accelerators.",
            "How many accelerators the given storage feeds, with what caches do not hold.",
            unlimited_without="physical_share"),
)  # fmt: skip
NODES: Final = (
    Formula("nodes", "", "⌈gpus / gpus_per_node⌉"),
    Formula("workers_per_gpu", "", "⌈samples_per_s × target_au × worker_s_per_sample⌉",
            "utilisation law: the busy servers are arrivals × service time.",
            "DataLoader workers; the time must include how concurrent workers slow each other."),
    Formula("workers_per_node", "", "workers_per_gpu × gpus_per_node"),
    Formula("cores_per_node", "",
            "⌈gpus_per_node × (samples_per_s × target_au × cpu_s_per_sample + 1)⌉",
            "utilisation law; ML Engineering: one more core for the main process.",
            "The 1 is for each accelerator's main process."),
    Formula("prefetched_bytes_per_node", "B",
            "workers_per_node × prefetch_factor × batch_size × tensor_bytes",
            "torch.utils.data: at most prefetch_factor batches of each worker are outstanding.",
            "Prefetched batches, which are kept in /dev/shm."),
    Formula("ram_of_loading", "B",
            "workers_per_node × worker_private_bytes"
            " + 2 × prefetched_bytes_per_node + page_cache_bytes",
            "pipeprof, docs/guides/size.md.",
            "Prefetched batches count twice: in shared memory, and page-locked."),
    Formula("least_ram_per_node", "B", "gpus_per_node × accelerator_memory",
            "SEI, A Hitchhiker's Guide to ML Training Infrastructure.",
            "More than that: the operating system and the application come on top."),
    Formula("ram_left", "B", "node_ram - ram_of_loading",
            note="For the training itself and the operating system; below 0, loading does not "
                 "fit."),
    Formula("node_read_bandwidth", "B/s", "read_bandwidth / nodes"),
    Formula("host_memory_traffic", "B/s", "8 × node_read_bandwidth",
            "counted: written to the page cache; copied by the read, into the batch, and into "
            "page-locked memory, each time read and written; read by the accelerator.",
            "Of data that no worker decodes, through the memory of a node. GPUDirect Storage "
            "saves it all."),
    Formula("local_cache_bandwidth", "B/s", "node_read_bandwidth × cache_hit_share",
            note="Read from the disk of each node."),
    Formula("local_cache_per_node", "B", "dataset_bytes × cache_hit_share / usable_capacity",
            "common practice: file systems slow down when they are more than 80 % full.",
            "Of each node's disk, where any node may read any sample; divide it by the nodes where "
            "each always reads the same share."),
    Formula("nodes_fed", "", "gpus_fed / gpus_per_node",
            note="How many such nodes the given storage feeds."),
    Formula("gpus_fed_per_node", "",
            "client_bandwidth / (samples_per_s × bytes_per_sample × target_au × physical_share)",
            "MLPerf Storage, required read bandwidth, solved for accelerators.",
            "How many accelerators of a node the bandwidth of one host feeds.",
            unlimited_without="physical_share"),
    Formula("all_reduce_bandwidth", "B/s",
            "2 × (nodes - 1) / nodes × parameters × gradient_bytes / step_s",
            "ring all-reduce, Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009).",
            "Each way, through a node's network, when its accelerators reduce among themselves "
            "first."),
    Formula("node_network", "B/s", "(node_read_bandwidth + all_reduce_bandwidth) / usable_share",
            "as above; 80 % of what is advertised.",
            "The bandwidth that the data sheet must state, when both share one network."),
)  # fmt: skip
CHECKPOINTS: Final = (
    Formula("checkpoint_bytes", "B", "parameters × checkpoint_bytes_per_parameter",
            "MLPerf Storage v2.0: fp16 model + fp32 optimizer state = 14 bytes a parameter."),
    Formula("checkpoint_bandwidth", "B/s", "checkpoint_bytes / checkpoint_s",
            note="Written, by all nodes together."),
    Formula("system_mtbf_s", "s", "device_mtbf_s / gpus",
            "failures that are independent of one another; MLPerf Storage v2.0.",
            "Mean time between failures of the system; any failing accelerator stops the job."),
    Formula("checkpoint_interval_s", "s", "√(2 × checkpoint_s × system_mtbf_s)",
            "J. W. Young, Comm. ACM 17 (1974); J. T. Daly, Future Gener. Comput. Syst. 22 (2006)."),
    Formula("time_lost_to_failures", "share",
            "checkpoint_s / checkpoint_interval_s + checkpoint_interval_s / (2 × system_mtbf_s)",
            "J. W. Young, Comm. ACM 17 (1974), to first order.",
            "Writing, when training stands still for it, and half an interval's work lost at each "
            "failure."),
    Formula("bandwidth_left_meanwhile", "B/s", "max(0, storage_bandwidth - checkpoint_bandwidth)",
            note="For reading while a checkpoint is written, where both share one limit."),
)  # fmt: skip
TRAINING: Final = (
    Formula("gpus_to_train", "", "⌈parameters × 18 × 1.25 / accelerator_memory⌉",
            "ML Engineering (training, memory).",
            "18 bytes a parameter: weights, gradients and optimizer in mixed precision; a quarter "
            "more."),
    Formula("gpus_to_serve", "", "⌈parameters × 2 × 1.25 / accelerator_memory⌉",
            "ML Engineering (inference, memory)."),
    Formula("mfu_if_fed", "share", "flop_per_sample × samples_per_s / peak_flop_per_s",
            "Chowdhery et al., PaLM (2022), appendix B.",
            "Model FLOP utilisation of an accelerator that never waits."),
    Formula("mfu", "share", "mfu_if_fed × (1 - starved_fraction)",
            "definition: nothing is computed while a batch is waited for."),
    Formula("training_s", "s", "training_flop / (gpus × peak_flop_per_s × mfu)",
            "definition of MFU."),
    Formula("training_cost", "$", "training_s / 3600 × gpus × price_per_gpu_hour"),
    Formula("waiting_cost_per_hour", "$", "gpus × price_per_gpu_hour × starved_fraction",
            note="Paid each hour for accelerators that wait for data."),
)  # fmt: skip

SECTIONS: Final = {
    "Storage, for all accelerators": STORAGE,
    "Each node": NODES,
    "Checkpoints": CHECKPOINTS,
    "Training": TRAINING,
}
FORMULAS: Final = {each.name: each for section in SECTIONS.values() for each in section}
