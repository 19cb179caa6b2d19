"""What a file system or an object store must give, so that accelerators are fed.

The first line of each docstring is the formula, in the names of its arguments.
"""

from __future__ import annotations

from math import ceil

from pipeprof.sizing.quantities import Bytes, BytesPerS, Count, PerS, Seconds, Share


def samples_per_s(batch_size: Count, step_s: Seconds) -> PerS:
    """batch_size / step_s

    What one accelerator takes when it never waits.
    Source: MLPerf Storage, which emulates an accelerator by its step.
    """
    return batch_size / step_s


def read_bandwidth(
    gpus: Count, samples_per_s: PerS, bytes_per_sample: Bytes, target_au: Share
) -> BytesPerS:
    """gpus × samples_per_s × bytes_per_sample × target_au

    Asked of storage by all readers together (logical).
    Source: MLPerf Storage, required read bandwidth.
    """
    return gpus * samples_per_s * bytes_per_sample * target_au


def read_bandwidth_per_gpu(read_bandwidth: BytesPerS, gpus: Count) -> BytesPerS:
    """read_bandwidth / gpus

    Source: definition.
    """
    return read_bandwidth / gpus


def physical_bandwidth(read_bandwidth: BytesPerS, physical_share: Share) -> BytesPerS:
    """read_bandwidth × physical_share

    What caches do not hold must come from devices.
    Source: definition; the share is physical bytes / logical bytes of a profile.
    """
    return read_bandwidth * physical_share


def advertised_bandwidth(physical_bandwidth: BytesPerS, usable_share: Share) -> BytesPerS:
    """physical_bandwidth / usable_share

    What the data sheet must say.
    Source: ML Engineering (the AI battlefield): count on 80 % of what is advertised.
    """
    return physical_bandwidth / usable_share


def requests_per_s(read_bandwidth: BytesPerS, request_bytes: Bytes) -> PerS:
    """read_bandwidth / request_bytes

    Source: definition.
    """
    return read_bandwidth / request_bytes


def request_s(first_byte_s: Seconds, request_bytes: Bytes, stream_bandwidth: BytesPerS) -> Seconds:
    """first_byte_s + request_bytes / stream_bandwidth

    Source: the usual linear model of a request; both figures are told by `pipeprof probe`.
    """
    return first_byte_s + request_bytes / stream_bandwidth


def requests_in_flight(requests_per_s: PerS, request_s: Seconds) -> Count:
    """⌈requests_per_s × request_s⌉

    Source: Little's law, J. D. C. Little, Operations Research 9 (1961).
    """
    return ceil(round(requests_per_s * request_s, 9))


def s3_prefixes(requests_per_s: PerS, s3_requests_per_prefix: PerS) -> Count:
    """⌈requests_per_s / s3_requests_per_prefix⌉

    Source: AWS, Best practices design patterns: 5,500 GET a second and prefix.
    """
    return ceil(round(requests_per_s / s3_requests_per_prefix, 9))


def dataset_bytes(dataset_samples: Count, record_bytes: Bytes) -> Bytes:
    """dataset_samples × record_bytes

    Source: definition.
    """
    return dataset_samples * record_bytes


def dataset_capacity(dataset_bytes: Bytes, usable_capacity: Share) -> Bytes:
    """dataset_bytes / usable_capacity

    Source: common practice: file systems slow down when they are more than 80 % full.
    """
    return dataset_bytes / usable_capacity


def staging_s(dataset_bytes: Bytes, storage_bandwidth: BytesPerS) -> Seconds:
    """dataset_bytes / storage_bandwidth

    To copy the data set from that storage once, as to local NVMe.
    Source: definition.
    """
    return dataset_bytes / storage_bandwidth


def epoch_s(dataset_samples: Count, gpus: Count, samples_per_s: PerS, target_au: Share) -> Seconds:
    """dataset_samples / (gpus × samples_per_s × target_au)

    Source: definition.
    """
    return dataset_samples / (gpus * samples_per_s * target_au)


def gpus_fed(
    storage_bandwidth: BytesPerS, samples_per_s: PerS, bytes_per_sample: Bytes, target_au: Share
) -> Count:
    """storage_bandwidth / (samples_per_s × bytes_per_sample × target_au)

    How many accelerators the storage at hand feeds.
    Source: MLPerf Storage, required read bandwidth, solved for accelerators.
    """
    return storage_bandwidth / (samples_per_s * bytes_per_sample * target_au)
