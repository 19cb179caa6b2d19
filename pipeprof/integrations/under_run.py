"""Let frameworks name their pauses under ``pipeprof run``, without an edit of the script.

The loaders themselves are measured by the session. Lightning asks for callbacks by itself: see the
entry points in ``pyproject.toml``.
"""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeprof.log import suppress_and_log
from pipeprof.measure.import_hook import when_imported
from pipeprof.storage.urls import join

if TYPE_CHECKING:
    from pipeprof.model import Profile

_log = logging.getLogger(__name__)

RAY_OUT = "PIPEPROF_RAY_OUT"
"""Variable that names the folder in which Ray's callback saves profiles."""


def install(out: str) -> None:
    """Act on each framework as soon as the script imports it. ``out`` is the folder for profiles of
    other processes."""
    when_imported("ray.train", lambda _: _profile_ray_workers(out))
    when_imported("transformers.trainer", _add_transformers_callback)
    for module, name, methods in (
        ("accelerate.accelerator", "Accelerator", ("save_state",)),
        ("lightning.fabric.fabric", "Fabric", ("save", "load")),
        ("lightning_fabric.fabric", "Fabric", ("save", "load")),
    ):
        when_imported(module, partial(_name_checkpoints, name=name, methods=methods))


def save_profile(profile: Profile, out: str, worker: int, number: int) -> None:
    """Save the profile of a loader of one of Ray's workers, at a path or a URL."""
    from pipeprof.storage.write import open_object
    from pipeprof.store import dumps

    with open_object(join(out, f"worker{worker}/loader-{number}.json")) as sink:
        sink.write(dumps(profile))


def has_other_profiles(out: str) -> bool:
    """Return whether the workers of Ray Train left profiles in ``out``, a path or a URL."""
    if os.environ.get(RAY_OUT) != out:
        return False
    from pipeprof.storage.write import object_sizes

    with suppress_and_log(_log, "whether workers left profiles is not known"):
        return any(name.startswith("worker") for name in object_sizes(out))
    return False


def _profile_ray_workers(out: str) -> None:
    callbacks = os.environ.get("RAY_TRAIN_CALLBACKS")
    ours = "pipeprof.integrations.ray.PipeprofRayCallback"
    os.environ["RAY_TRAIN_CALLBACKS"] = f"{callbacks},{ours}" if callbacks else ours
    os.environ[RAY_OUT] = out


def lightning_callbacks() -> list[Any]:
    """Return what Lightning adds to every ``Trainer``, as the entry point asks: nothing, except
    under ``pipeprof run``."""
    session = sys.modules.get("pipeprof.loaders.autopatch.session")
    with suppress_and_log(_log, "pauses of Lightning are not named"):
        if session is not None and session.is_running():
            from pipeprof.integrations.lightning import LightningPhases

            return [LightningPhases()]
    return []


def _add_transformers_callback(module: ModuleType) -> None:
    with suppress_and_log(_log, "pauses of transformers are not named"):
        from pipeprof.integrations.transformers import TransformersPhases

        module.DEFAULT_CALLBACKS.append(TransformersPhases)


def _name_checkpoints(module: ModuleType, name: str, methods: tuple[str, ...]) -> None:
    """Name each call of ``methods`` of the class ``name`` a checkpoint."""
    from pipeprof.integrations.instance_patches import as_phase

    with suppress_and_log(_log, f"checkpoints of {name} are not named"):
        cls: Any = getattr(module, name)
        for method in methods:
            setattr(cls, method, as_phase(getattr(cls, method), partial(str, "checkpoint")))
