"""Hook the loaders of libraries that are no DataLoader of torch's: those that work in threads,
whose stages `loaders.pipelines` times, and fastai's."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pipeprof.loaders.instrument import fastai
from pipeprof.loaders.instrument.monkeypatch import MakeMethod, observe_creation, wrap_method
from pipeprof.log import log_caught
from pipeprof.measure.import_hook import when_imported

_log = logging.getLogger(__name__)

_CLASSES = {"torchdata.nodes": "Loader", "grain": "DataLoader", "spdl.pipeline": "Pipeline"}
"""Library → the class that a script iterates. A pipeline of Grain has many ``IterDataset`` objects,
of which a script iterates the last alone: that must be wrapped."""


def hook_other_loaders(
    wrap_iter: MakeMethod,
    wrap_init: MakeMethod | None,
    created: Callable[[Any], None],
    problems: list[str],
) -> None:
    """Wrap what makes the iterators of these loaders by ``wrap_iter``, once they are imported, and
    what takes options of torch's DataLoader by ``wrap_init``. ``created`` is called with each new
    loader. What cannot be done is added to ``problems``."""

    def hook(module: ModuleType) -> None:
        try:
            if module.__name__ == fastai.MODULE:
                fastai.wrap_iterators(module, wrap_iter, key="run")
                stand_in = getattr(module, fastai.STAND_IN)
                observe_creation(stand_in, created, key="run")
                if wrap_init is not None:
                    wrap_method(stand_in, "__init__", wrap_init, key="run")
            else:
                cls = getattr(module, _CLASSES[module.__name__])
                wrap_method(cls, "__iter__", wrap_iter, key="run")
                observe_creation(cls, created, key="run")
        except Exception as error:
            problem = f"loaders of {module.__name__} cannot be profiled"
            log_caught(_log, error, problem)
            problems.append(f"{problem} ({type(error).__name__})")

    for library in (*_CLASSES, fastai.MODULE):
        when_imported(library, hook)
