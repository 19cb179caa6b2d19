"""Profile the loaders that Accelerate prepares, and name its checkpoints.

`pipeprof.wrap` is enough for a single loader, before or after ``prepare``.
"""

from __future__ import annotations

import logging
from typing import Any

from pipeprof.integrations.instance_patches import InstancePatches, as_phase
from pipeprof.integrations.profiled_loaders import ProfiledLoaders
from pipeprof.loaders.instrument.monkeypatch import Method
from pipeprof.log import suppress_and_log

_log = logging.getLogger(__name__)


def profile_loaders(accelerator: Any) -> ProfiledLoaders:
    """Profile each DataLoader that an ``Accelerator`` prepares from now on.

    Args:
        accelerator: The ``Accelerator``, before its first ``prepare``.

    Returns:
        The loaders, named ``loader 1``, ``loader 2`` … in the order in which they are prepared. Its
        ``profiles`` are a dictionary; ``report(out)`` prints and saves them.

    Examples:
        >>> loaders = profile_loaders(accelerator)
        >>> model, train, validation = accelerator.prepare(model, train, validation)
        >>> ...
        >>> loaders.report("profiles")
    """
    loaders, patches = ProfiledLoaders(), InstancePatches()
    count = 0

    def profiled(prepare: Method) -> Method:
        def prepare_data_loader(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            prepared = prepare(*args, **kwargs)
            with suppress_and_log(_log, "a loader is not measured"):
                count += 1
                loaders.measure(prepared, f"loader {count}")
            return prepared

        return prepare_data_loader

    patches.replace(accelerator, "prepare_data_loader", profiled)
    patches.replace(accelerator, "save_state", lambda save: as_phase(save, lambda: "checkpoint"))
    return loaders
