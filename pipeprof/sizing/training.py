"""Accelerators that a model takes, time and money, and what waiting for data costs.

The first line of each docstring is the formula, in the names of its arguments.
"""

from __future__ import annotations

from math import ceil

from pipeprof.sizing.quantities import (
    Bytes,
    Count,
    Dollars,
    Flop,
    FlopPerS,
    PerS,
    Seconds,
    Share,
)  # fmt: skip

_SPARE = 1.25


def gpus_to_train(parameters: Count, accelerator_memory: Bytes) -> Count:
    """⌈parameters × 18 × 1.25 / accelerator_memory⌉

    18 bytes a parameter: weights, gradients and optimizer in mixed precision; a quarter more.
    Source: ML Engineering (training, memory).
    """
    return ceil(parameters * 18 * _SPARE / accelerator_memory)


def gpus_to_serve(parameters: Count, accelerator_memory: Bytes) -> Count:
    """⌈parameters × 2 × 1.25 / accelerator_memory⌉

    Source: ML Engineering (inference, memory).
    """
    return ceil(parameters * 2 * _SPARE / accelerator_memory)


def mfu_if_fed(flop_per_sample: Flop, samples_per_s: PerS, peak_flop_per_s: FlopPerS) -> Share:
    """flop_per_sample × samples_per_s / peak_flop_per_s

    Model FLOP utilisation of an accelerator that never waits.
    Source: Chowdhery et al., PaLM (2022), appendix B.
    """
    return flop_per_sample * samples_per_s / peak_flop_per_s


def mfu(mfu_if_fed: Share, starved_fraction: Share) -> Share:
    """mfu_if_fed × (1 - starved_fraction)

    Source: definition: nothing is computed while a batch is waited for.
    """
    return mfu_if_fed * (1 - starved_fraction)


def training_s(training_flop: Flop, gpus: Count, peak_flop_per_s: FlopPerS, mfu: Share) -> Seconds:
    """training_flop / (gpus × peak_flop_per_s × mfu)

    Source: definition of MFU.
    """
    return training_flop / (gpus * peak_flop_per_s * mfu)


def training_cost(training_s: Seconds, gpus: Count, price_per_gpu_hour: Dollars) -> Dollars:
    """training_s / 3600 × gpus × price_per_gpu_hour

    Source: definition.
    """
    return training_s / 3600 * gpus * price_per_gpu_hour


def waiting_cost_per_hour(
    gpus: Count, price_per_gpu_hour: Dollars, starved_fraction: Share
) -> Dollars:
    """gpus × price_per_gpu_hour × starved_fraction

    Paid each hour for accelerators that wait for data.
    Source: definition.
    """
    return gpus * price_per_gpu_hour * starved_fraction
