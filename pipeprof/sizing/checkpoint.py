"""What checkpoints ask of storage, and how often to write one.

The first line of each docstring is the formula, in the names of its arguments.
"""

from __future__ import annotations

from math import sqrt

from pipeprof.sizing.quantities import Bytes, BytesPerS, Count, Seconds, Share


def checkpoint_bytes(parameters: Count, checkpoint_bytes_per_parameter: Bytes) -> Bytes:
    """parameters × checkpoint_bytes_per_parameter

    Source: MLPerf Storage v2.0: fp16 model + fp32 optimizer state = 14 bytes a parameter.
    """
    return parameters * checkpoint_bytes_per_parameter


def checkpoint_bandwidth(checkpoint_bytes: Bytes, checkpoint_s: Seconds) -> BytesPerS:
    """checkpoint_bytes / checkpoint_s

    Written, by all nodes together.
    Source: definition.
    """
    return checkpoint_bytes / checkpoint_s


def system_mtbf_s(device_mtbf_s: Seconds, gpus: Count) -> Seconds:
    """device_mtbf_s / gpus

    Mean time between failures of the whole, any of whose accelerators stops the job.
    Source: failures that are independent of one another; MLPerf Storage v2.0.
    """
    return device_mtbf_s / gpus


def checkpoint_interval_s(checkpoint_s: Seconds, system_mtbf_s: Seconds) -> Seconds:
    """√(2 × checkpoint_s × system_mtbf_s)

    Source: J. W. Young, Comm. ACM 17 (1974); J. T. Daly, Future Gener. Comput. Syst. 22 (2006).
    """
    return sqrt(2 * checkpoint_s * system_mtbf_s)


def time_lost_to_failures(
    checkpoint_s: Seconds, checkpoint_interval_s: Seconds, system_mtbf_s: Seconds
) -> Share:
    """checkpoint_s / checkpoint_interval_s + checkpoint_interval_s / (2 × system_mtbf_s)

    Writing, when training stands still for it, and half an interval's work lost at each failure.
    Source: J. W. Young, Comm. ACM 17 (1974), to first order.
    """
    return checkpoint_s / checkpoint_interval_s + checkpoint_interval_s / (2 * system_mtbf_s)


def bandwidth_left_meanwhile(
    storage_bandwidth: BytesPerS, checkpoint_bandwidth: BytesPerS
) -> BytesPerS:
    """storage_bandwidth - checkpoint_bandwidth, not below 0

    For reading while a checkpoint is written, where both share one limit.
    Source: definition.
    """
    return max(0.0, storage_bandwidth - checkpoint_bandwidth)
