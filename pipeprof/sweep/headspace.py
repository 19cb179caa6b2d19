"""What there is left to gain: a sweep's best setting against batches that lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeprof.errors import PipeprofError
from pipeprof.loaders.headspace import headspace
from pipeprof.model import Headspace, SweepSpec
from pipeprof.sweep.cache import prepare
from pipeprof.sweep.grid import TrialSetting
from pipeprof.sweep.own_loader import OwnLoader, explained
from pipeprof.sweep.trial import any_workers, from_worker, loader_of, make_consumer, open_data


def measure_headspace(
    spec: SweepSpec, setting: TrialSetting, storage_options: Mapping[str, Any] | None = None
) -> Headspace:
    """Measure the gain if data were free, as long as a trial. Raises what a trial does."""
    consumer = make_consumer(spec, setting.batch_size)
    with any_workers():
        if spec.loader is not None:
            loader = OwnLoader(spec.loader).make(setting)
            with explained(spec.loader):
                return headspace(loader, consumer.step, seconds=spec.trial_s)
        dataset = open_data(spec, setting, storage_options)
        prepare(setting.url, spec.cache)
        loader = loader_of(dataset, setting)
        try:
            return headspace(loader, consumer.step, seconds=spec.trial_s)
        except PipeprofError as error:
            raise from_worker(error.with_traceback(None)) from None
