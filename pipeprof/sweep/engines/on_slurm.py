"""Run the trials of a sweep as jobs of Slurm, by submitit."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from pipeprof.errors import PipeprofError, StorageError, UsageError
from pipeprof.log import log_caught
from pipeprof.store import SWEEP_FILE
from pipeprof.sweep.engines.engine import carried_out, result_of

_log = logging.getLogger(__name__)

T = TypeVar("T")

_CLUSTER = "cluster"
"""The option that chooses submitit's cluster: ``slurm``, or ``local`` for this machine."""
_MINUTES = 60
"""Most minutes of a trial, unless ``timeout_min`` says otherwise."""


class SlurmEngine:
    """Submits each trial as a job, and waits for its end."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        """Keep the logs of the jobs in ``folder``, which all nodes see.

        Args:
            folder: For submitit's files.
            options: Parameters of submitit, such as ``slurm_partition`` and ``cpus_per_task``.

        Raises:
            UsageError: submitit is not installed, finds no Slurm, or does not know an option.
        """
        try:
            submitit = import_module("submitit")
        except ImportError:
            raise UsageError("--on slurm needs submitit: pip install 'pipeprof[slurm]'") from None
        self._folder = folder
        self._errors: type[Exception] = submitit.core.utils.FailedJobError
        given = {name: value for name, value in options.items() if name != _CLUSTER}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._executor = submitit.AutoExecutor(
                folder=folder, cluster=options.get(_CLUSTER, "slurm")
            )
            self._executor.update_parameters(**{"timeout_min": _MINUTES, **given})
        except (RuntimeError, TypeError, NameError, ValueError, OSError) as error:
            self.close()
            raise UsageError(f"submitit refuses --on slurm or its --on-options: {error}") from None

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Run ``function`` in a job. See `Engine.call`."""
        job = self._executor.submit(carried_out, function, arguments)
        try:
            answer: tuple[T | None, PipeprofError | None] = job.result()
        except KeyboardInterrupt:
            job.cancel()
            raise
        except self._errors as error:
            log_caught(_log, error, "the trial has no result")
            raise StorageError(
                f"The job {job.job_id} of a trial ended without a result; see {job.paths.stderr}."
            ) from None
        finally:  # it holds the storage options, and so perhaps keys
            job.paths.submitted_pickle.unlink(missing_ok=True)
        return result_of(answer)

    def close(self) -> None:
        """Remove the logs where no sweep came of it."""
        if not (self._folder.parent / SWEEP_FILE).exists():
            shutil.rmtree(self._folder, ignore_errors=True)
            with suppress(OSError):
                self._folder.parent.rmdir()
