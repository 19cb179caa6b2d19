"""Profile the loaders of Lightning's ``Trainer``, and name what runs between its steps.

Lightning 2.0 or newer, as `lightning` or `pytorch_lightning`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.integrations.instance_patches import InstancePatches, as_phase
from pipeprof.integrations.profiled_loaders import ProfiledLoaders, warn_if_too_old
from pipeprof.loaders.instrument.monkeypatch import Method
from pipeprof.log import say, suppress_and_log
from pipeprof.model import Profile

if TYPE_CHECKING:
    Callback: Any = object
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ModuleNotFoundError:
        from pytorch_lightning.callbacks import Callback

_log = logging.getLogger(__name__)

_NAMES = {"sanity_check": "validation", "validate": "validation"}
"""Names of loaders by the trainer's stage, where they differ."""


class LightningPhases(Callback):  # type: ignore[misc]
    """Names what runs between steps: sanity check, validation, checkpoint, logging."""

    def __init__(self) -> None:
        self._patches = InstancePatches()

    def setup(self, trainer: Any, *_: Any, **__: Any) -> None:
        with suppress_and_log(_log, "what runs between steps is not named"):
            loop = trainer.fit_loop.epoch_loop.val_loop
            self._patches.replace(loop, "run", lambda run: as_phase(run, lambda: _phase(trainer)))
            self._patches.replace(
                trainer, "save_checkpoint", lambda save: as_phase(save, lambda: "checkpoint")
            )
            if trainer.loggers:
                connector = trainer._logger_connector
                self._patches.replace(
                    connector, "log_metrics", lambda log: as_phase(log, lambda: "logging")
                )

    def teardown(self, *_: Any, **__: Any) -> None:
        self._patches.undo()

    def on_exception(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        self.teardown(trainer, *args, **kwargs)  # which Lightning does not call then


class PipeprofCallback(LightningPhases):
    """Profiles every loader that a ``Trainer`` iterates, in fit, validate, test and predict.

    At the end, or where training raises, the reports are printed to stderr on rank 0. Training is
    as without it.

    Args:
        out: Folder in which each rank saves its profiles; ``None`` saves none.

    Examples:
        >>> from pipeprof.integrations.lightning import PipeprofCallback
        >>> trainer = Trainer(callbacks=[PipeprofCallback()])
    """

    def __init__(self, out: str | Path | None = None) -> None:
        super().__init__()
        for package in ("lightning", "pytorch_lightning"):
            warn_if_too_old(package, "2.0")
        self._out = out
        self._loaders = ProfiledLoaders()
        self._is_second = False
        """Whether another callback profiles the loaders of this trainer."""

    @property
    def profiles(self) -> dict[str, Profile]:
        """The profile of each loader so far: ``train``, ``validation``, ``test``, ``predict``."""
        return self._loaders.profiles

    def setup(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        super().setup(trainer, *args, **kwargs)

        def profiled(process: Method) -> Method:
            return lambda loader: self._loaders.wrap(process(loader), self._name(trainer))

        with suppress_and_log(_log, "the loaders are not measured"):
            first = self._patches.replace(trainer.strategy, "process_dataloader", profiled)
            self._is_second = not first

    def teardown(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        super().teardown(trainer, *args, **kwargs)
        if self._is_second:
            say("PipeprofCallback was added twice; the first one profiles the loaders.")
        else:
            self._loaders.report(self._out, trainer.global_rank, trainer.world_size)

    def _name(self, trainer: Any) -> str:
        stage = getattr(trainer.state.stage, "value", None) or "loader"
        return _NAMES.get(stage, stage)


def _phase(trainer: Any) -> str:
    return "sanity check" if trainer.sanity_checking else "validation"
