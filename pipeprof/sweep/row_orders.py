"""Measure what each order of rows costs on a data set, at its best setting, and how it mixes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from pipeprof.analyze.sweep.row_orders import Mixing, Numbers, evaluate_orders, mixing_of
from pipeprof.errors import UsageError
from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.loaders.dataset.planning import ObjectSplit
from pipeprof.loaders.dataset.split_decoder import ROW_NUMBER, ROWS_OF_SPLIT
from pipeprof.model import RowOrders, SweepSpec, Trial
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.trial import loader_of, run_trial, with_loader
from pipeprof.sweep.trial_summary import summarise_trial

_ROUNDS, _ROUNDS_OF_SLOW = 4, 2
"""How often each order is measured; the interval of fewer would be too wide."""
_SLOW = 1 / 20
"""Below this multiple of the first order's rate, fewer runs tell enough."""


def measure_orders(
    spec: SweepSpec, setting: TrialSetting, storage_options: Mapping[str, Any] | None = None
) -> RowOrders:
    """Run a trial of each order of ``spec.shuffle`` in turn, some times over.

    Args:
        spec: What the sweep tries, and the orders.
        setting: The setting to measure with.
        storage_options: The storage options of fsspec.

    Raises:
        UsageError: None of the orders can be had.
    """
    mixing, impossible = dict[str, Mixing](), list[str]()
    splits = with_loader(spec, setting, storage_options, lambda _, data: _splits_of(data))
    for order in spec.shuffle:
        ordered = replace(setting, shuffle=order)
        try:
            mixing[order] = with_loader(
                spec, ordered, storage_options, partial(_mixing, spec, ordered, splits)
            )
        except UsageError as error:
            impossible.append(f"{order}: {error}")
    if not mixing:
        raise UsageError("; ".join(impossible))
    runs: dict[str, list[Trial]] = {order: [] for order in mixing}
    first = next(iter(runs))
    for number in range(_ROUNDS):
        for order in list(runs)[:: 1 if number % 2 == 0 else -1]:
            if number >= _ROUNDS_OF_SLOW and _rate(runs[order]) < _SLOW * _rate(runs[first]):
                continue
            runs[order].append(_run(spec, replace(setting, shuffle=order), storage_options))
    assert setting.batch_size is not None
    return evaluate_orders(runs, mixing, len(splits), setting.batch_size, tuple(impossible))


def _run(
    spec: SweepSpec, setting: TrialSetting, storage_options: Mapping[str, Any] | None
) -> Trial:
    measured = run_trial(spec, setting, storage_options, lone_requests=False)
    return summarise_trial(setting, *measured, "")


def _mixing(
    spec: SweepSpec,
    setting: TrialSetting,
    splits: Sequence[ObjectSplit],
    _: object,
    data: FileDataset | None,
) -> Mixing:
    """Return how the batches of a trial's time are mixed. The order *full* may read smaller splits;
    a row is counted to that of ``splits`` in which it lies."""
    starts = sorted((item.url, split.start) for item, split in splits)
    holders = np.array(
        [bisect_right(starts, (item.url, split.start)) for item, split in _splits_of(data)]
    )
    assert data is not None
    began, batches = perf_counter(), list[tuple[Numbers, Numbers]]()
    for batch in loader_of(data.numbered(), setting):
        rows = batch[ROW_NUMBER].numpy()
        batches.append((holders[rows // ROWS_OF_SPLIT], rows.copy()))
        if len(batches) > 1 and perf_counter() - began > spec.trial_s:
            break
    return mixing_of(batches)


def _splits_of(data: FileDataset | None) -> Sequence[ObjectSplit]:
    assert data is not None, "a loader of one's own has no orders to choose from"
    return data.object_splits


def _rate(runs: list[Trial]) -> float:
    return fmean(run.samples_per_s for run in runs)
