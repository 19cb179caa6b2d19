"""Profile the loaders in each worker of Ray Train, and bring the profiles together.

Ray 2.46 or newer, whose workers run callbacks of Train V2. A loader is measured as under
``pipeprof run``, so the training function is not edited.
"""

from __future__ import annotations

import logging
import os
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.integrations.instance_patches import as_phase
from pipeprof.integrations.under_run import RAY_OUT, save_profile
from pipeprof.loaders.instrument.monkeypatch import Method, wrap_in
from pipeprof.log import log_caught, say, suppress_and_log
from pipeprof.storage.urls import is_local, local_path, redact

if TYPE_CHECKING:
    from pipeprof.loaders.autopatch.session import Session
    from pipeprof.model import Profile

    WorkerGroupCallback: Any = object
else:
    try:
        from ray.train.v2._internal.execution.callback import WorkerGroupCallback
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray" or error.name == "ray":
            raise
        raise UsageError("this Ray is too old: its Train V2, of Ray 2.46, is needed.") from None

_log = logging.getLogger(__name__)

_sessions: list[Session] = []
"""Those of this worker's process."""


class PipeprofRayCallback(WorkerGroupCallback):  # type: ignore[misc]
    """Profiles every DataLoader that a worker of Ray Train iterates.

    At the end the reports of worker 0 are printed, and all profiles are saved where the controller
    runs. A worker that has died leaves no profile.

    Args:
        out: Folder for the profiles, a path or a URL of fsspec, as ``OUT/worker0/loader-1.json``;
            ``None`` saves none.

    Examples:
        >>> from pipeprof.integrations.ray import PipeprofRayCallback
        >>> run_config = RunConfig(callbacks=[PipeprofRayCallback("profiles")])
    """

    def __init__(self, out: str | Path | None = None) -> None:
        folder = str(out or os.environ.get(RAY_OUT) or "")
        self._out = local_path(folder) if folder and is_local(folder) else folder

    def after_execution_group_start(self, group: Any) -> None:
        with suppress_and_log(_log, "no worker is measured"):
            group.execute(start_session)

    def before_execution_group_shutdown(self, group: Any) -> None:
        try:
            profiles = group.execute(collect_profiles)
        except Exception as error:  # workers may be dead
            log_caught(_log, error, "the profiles of the workers are lost")
            say("no worker could be asked for its profiles; one has died.")
            return
        with suppress_and_log(_log, "the profiles are not shown"):
            _report(profiles, self._out)


def start_session() -> None:
    """Measure every DataLoader that this process creates from now on."""
    from pipeprof.loaders.autopatch.call_sites import CallSites
    from pipeprof.loaders.autopatch.session import Session

    if not _sessions:
        _sessions.append(Session(CallSites(os.getcwd())))
        _sessions[0].install()
        with suppress_and_log(_log, "reports and checkpoints are not named"):
            _name_reports()


def _name_reports() -> None:
    """Name what `ray.train.report` does, which blocks: a checkpoint or a report."""
    train_fn_utils: Any = import_module("ray.train.v2._internal.execution.train_fn_utils")
    for cls in (train_fn_utils.DistributedTrainFnUtils, train_fn_utils.LocalTrainFnUtils):
        wrap_in(cls, "report", _named_report, key="pauses")


def _named_report(report: Method) -> Method:
    @wraps(report)
    def named(*args: Any, **kwargs: Any) -> Any:
        name = "report" if kwargs.get("checkpoint") is None else "checkpoint"
        return as_phase(report, lambda: name)(*args, **kwargs)

    return named


def collect_profiles() -> list[Profile]:
    """Return the profiles of this process."""
    return [profile for session in _sessions for profile in session.profiles(0.05)]


def _report(profiles: list[list[Profile]], out: str) -> None:
    for worker, found in enumerate(profiles):
        for number, profile in enumerate(found, start=1):
            if not worker:
                say(f"worker 0: {profile.name}\n\n{profile}\n")
            if out:
                save_profile(profile, out, worker, number)
    if not any(profiles):
        say("no worker iterated a DataLoader.")
    elif out:
        say(f"saved the profiles of {len(profiles)} workers in {redact(out)}")
