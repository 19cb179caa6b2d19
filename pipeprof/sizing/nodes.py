"""What each host must have: workers, cores, memory, network.

The first line of each docstring is the formula, in the names of its arguments.
"""

from __future__ import annotations

from math import ceil

from pipeprof.sizing.quantities import Bytes, BytesPerS, Count, PerS, Seconds, Share


def nodes(gpus: Count, gpus_per_node: Count) -> Count:
    """⌈gpus / gpus_per_node⌉

    Source: definition.
    """
    return ceil(gpus / gpus_per_node)


def workers_per_gpu(samples_per_s: PerS, target_au: Share, worker_s_per_sample: Seconds) -> Count:
    """⌈samples_per_s × target_au × worker_s_per_sample⌉

    DataLoader workers; what they cost beside each other must be in the figure.
    Source: utilisation law: the busy servers are arrivals × service time.
    """
    return max(1, ceil(round(samples_per_s * target_au * worker_s_per_sample, 9)))


def workers_per_node(workers_per_gpu: Count, gpus_per_node: Count) -> Count:
    """workers_per_gpu × gpus_per_node

    Source: definition.
    """
    return workers_per_gpu * gpus_per_node


def cores_per_node(
    gpus_per_node: Count, samples_per_s: PerS, target_au: Share, cpu_s_per_sample: Seconds
) -> Count:
    """⌈gpus_per_node × (samples_per_s × target_au × cpu_s_per_sample + 1)⌉

    The 1 is for each accelerator's own process.
    Source: utilisation law; ML Engineering: a core for the main process beside the workers'.
    """
    busy = samples_per_s * target_au * cpu_s_per_sample + 1
    return ceil(round(gpus_per_node * busy, 9))


def prefetched_bytes_per_node(
    workers_per_node: Count, prefetch_factor: Count, batch_size: Count, tensor_bytes: Bytes
) -> Bytes:
    """workers_per_node × prefetch_factor × batch_size × tensor_bytes

    Batches under way, which lie in /dev/shm.
    Source: torch.utils.data: at most prefetch_factor batches of each worker are outstanding.
    """
    return workers_per_node * prefetch_factor * batch_size * tensor_bytes


def ram_of_loading(
    workers_per_node: Count,
    worker_private_bytes: Bytes,
    prefetched_bytes_per_node: Bytes,
    page_cache_bytes: Bytes,
) -> Bytes:
    """workers_per_node × worker_private_bytes + 2 × prefetched_bytes_per_node + page_cache_bytes

    Prefetched batches count twice: in shared memory, and page-locked.
    Source: pipeprof, docs/storage-teams.md.
    """
    private = workers_per_node * worker_private_bytes
    return private + 2 * prefetched_bytes_per_node + page_cache_bytes


def least_ram_per_node(gpus_per_node: Count, accelerator_memory: Bytes) -> Bytes:
    """gpus_per_node × accelerator_memory

    More than that: the operating system and the application come on top.
    Source: SEI, A Hitchhiker's Guide to ML Training Infrastructure.
    """
    return gpus_per_node * accelerator_memory


def ram_left(node_ram: Bytes, ram_of_loading: Bytes) -> Bytes:
    """node_ram - ram_of_loading

    For the training itself and the operating system; below 0, loading does not fit.
    Source: definition.
    """
    return node_ram - ram_of_loading


def node_read_bandwidth(read_bandwidth: BytesPerS, nodes: Count) -> BytesPerS:
    """read_bandwidth / nodes

    Source: definition.
    """
    return read_bandwidth / nodes


def all_reduce_bandwidth(
    nodes: Count, parameters: Count, gradient_bytes: Bytes, step_s: Seconds
) -> BytesPerS:
    """2 × (nodes - 1) / nodes × parameters × gradient_bytes / step_s

    Each way, through a node's network, when its accelerators reduce among themselves first.
    Source: ring all-reduce, Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009).
    """
    return 2 * (nodes - 1) / nodes * parameters * gradient_bytes / step_s


def node_network(
    node_read_bandwidth: BytesPerS, all_reduce_bandwidth: BytesPerS, usable_share: Share
) -> BytesPerS:
    """(node_read_bandwidth + all_reduce_bandwidth) / usable_share

    What the data sheet must say, when both share one network.
    Source: as above; 80 % of what is advertised.
    """
    return (node_read_bandwidth + all_reduce_bandwidth) / usable_share
