"""Profile the training loader of transformers' ``Trainer``, and name what runs between steps.

A callback of transformers is called when an evaluation or a checkpoint is over. It began when the
step ended after which it was due, or when the phase before it was over.
"""

from __future__ import annotations

import logging
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pipeprof.integrations.profiled_loaders import ProfiledLoaders, warn_if_too_old
from pipeprof.log import suppress_and_log
from pipeprof.measure.pauses import announce_phase
from pipeprof.model import Profile

if TYPE_CHECKING:
    TrainerCallback: Any = object
else:
    from transformers import TrainerCallback

_log = logging.getLogger(__name__)


class TransformersPhases(TrainerCallback):  # type: ignore[misc]
    """Names what runs between training steps: logging, evaluation, checkpoint."""

    def __init__(self) -> None:
        self._since_s = perf_counter()
        """When the last step, or the last phase after it, was over."""

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._since_s = perf_counter()

    def on_epoch_end(self, *_: Any, **__: Any) -> None:
        self._since_s = perf_counter()

    def on_log(self, *_: Any, logs: Any = None, **__: Any) -> None:
        if not any(name.startswith("eval_") for name in logs or ()):  # then it is evaluated still
            self._ended("logging")

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self._ended("evaluation")

    def on_save(self, *_: Any, **__: Any) -> None:
        self._ended("checkpoint")

    def _ended(self, phase: str) -> None:
        announce_phase(phase, self._since_s)
        self._since_s = perf_counter()


class PipeprofCallback(TransformersPhases):
    """Profiles the training loader of a ``Trainer``.

    At the end the report is printed to stderr on rank 0. Training is as without it. The loaders of
    evaluations are profiled under ``pipeprof run`` only, as a callback sees them too late.

    Args:
        out: Folder in which each rank saves its profile; ``None`` saves none.

    Examples:
        >>> from pipeprof.integrations.transformers import PipeprofCallback
        >>> trainer = Trainer(model, arguments, callbacks=[PipeprofCallback()])
    """

    def __init__(self, out: str | Path | None = None) -> None:
        super().__init__()
        warn_if_too_old("transformers", "4.40")
        self._out = out
        self._loaders = ProfiledLoaders()

    @property
    def profiles(self) -> dict[str, Profile]:
        """The profile of the loader ``train`` so far."""
        return self._loaders.profiles

    def on_train_begin(
        self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any
    ) -> None:
        with suppress_and_log(_log, "the training loader is not measured"):
            self._loaders.measure(train_dataloader, "train")

    def on_train_end(self, args: Any, *_: Any, **__: Any) -> None:
        self._loaders.report(self._out, args.process_index, args.world_size)
