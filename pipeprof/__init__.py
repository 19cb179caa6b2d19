"""pipeprof: where every millisecond of a training batch goes, from storage to RAM to the GPU.

The names below are the whole public API. They load on first use, so that importing pipeprof imports
neither torch nor pyarrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipeprof import results as _results  # noqa: F401  (binds the methods of results)
from pipeprof.log import set_up as _set_up_logging
from pipeprof.version import __version__ as __version__

if TYPE_CHECKING:
    from pipeprof.cli.gather import gather as gather
    from pipeprof.errors import PipeprofError as PipeprofError
    from pipeprof.loaders.dataset.dataset import open_dataset as open_dataset
    from pipeprof.loaders.headspace import headspace as headspace
    from pipeprof.loaders.instrument.wrap import wrap as wrap
    from pipeprof.loaders.tune.tune import tune as tune
    from pipeprof.measure.h2d import to_device as to_device
    from pipeprof.measure.pauses import pause as pause
    from pipeprof.measure.stage_timer import stage as stage
    from pipeprof.model import Profile as Profile
    from pipeprof.model import ReadOptions as ReadOptions
    from pipeprof.model import Stage as Stage
    from pipeprof.model import SweepResult as SweepResult
    from pipeprof.store import load as load

_set_up_logging()

_MODULES = {
    "PipeprofError": "pipeprof.errors",
    "Profile": "pipeprof.model",
    "ReadOptions": "pipeprof.model",
    "Stage": "pipeprof.model",
    "SweepResult": "pipeprof.model",
    "gather": "pipeprof.cli.gather",
    "headspace": "pipeprof.loaders.headspace",
    "load": "pipeprof.store",
    "open_dataset": "pipeprof.loaders.dataset.dataset",
    "pause": "pipeprof.measure.pauses",
    "stage": "pipeprof.measure.stage_timer",
    "to_device": "pipeprof.measure.h2d",
    "tune": "pipeprof.loaders.tune.tune",
    "wrap": "pipeprof.loaders.instrument.wrap",
}

__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    try:
        module = _MODULES[name]
    except KeyError:
        raise AttributeError(f"module 'pipeprof' has no attribute {name!r}") from None
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
