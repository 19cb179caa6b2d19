"""Measure in a process that a script under `pipeprof run` started, and leave a note of it.

Nothing is printed there: the process that the user started reports on all.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeprof.cli.run_note import BEGUN, Note, leave_in_scratch, make_scratch
from pipeprof.cli.run_options import LiveOptions
from pipeprof.cli.run_ranks import OtherRanks, has_other_nodes
from pipeprof.cli.run_ray import save_before_ray_kills
from pipeprof.cli.run_save import ProfileFolder, save_and_note
from pipeprof.cli.run_settings import RunSettings
from pipeprof.cli.script import strip_own_frames
from pipeprof.integrations import under_run
from pipeprof.loaders.autopatch.session import Session, is_running
from pipeprof.log import log_caught, say, suppress_and_log
from pipeprof.measure.job_place import find_job_place

if TYPE_CHECKING:
    from pipeprof.loaders.live.periodic import Periodic

_log = logging.getLogger(__name__)


def start() -> None:
    """Measure every DataLoader that this new process creates from now on."""
    if is_running():
        return
    try:
        _start(RunSettings.handed_on())
    except Exception as error:  # the process is to run as without us
        log_caught(_log, error, "a followed process is not measured", logging.WARNING)
        say(f"process {os.getpid()} is not measured ({type(error).__name__}).")


def _start(settings: RunSettings) -> None:
    session = settings.session(
        _script_folder(), _outputs(settings), lambda: leave_at_end(settings, session)
    )
    session.install()
    under_run.install(settings.out)
    sys.excepthook = partial(_without_own_frames, sys.excepthook)
    leave_at_end(settings, session)


def _without_own_frames(
    shown: Callable[..., Any], kind: type[BaseException], error: BaseException, trace: Any
) -> None:
    """Let ``shown`` print an uncaught error as without pipeprof."""
    strip_own_frames(error)
    shown(kind, error, error.__traceback__)


def leave_at_end(settings: RunSettings, session: Session) -> None:
    """Save the profiles of this process when it ends, and leave a note of them."""
    begun = _note_begin(settings)
    leave = Once(lambda: _leave(settings, session, others, begun, is_saved))
    others, is_saved = OtherRanks(settings.out), save_before_ray_kills(settings, leave)
    ProfileFolder(settings.out).prepare(settings.html)
    atexit.register(leave)
    # a process of multiprocessing runs no exit handlers; this is its last finalizer
    if multiprocessing := sys.modules.get("multiprocessing.util"):
        multiprocessing.Finalize(None, leave, exitpriority=-100)


def _note_begin(settings: RunSettings) -> Path | None:
    """Leave a file until this process ends, so that one which is killed is known. A daemon, as each
    worker of a DataLoader is, is ended by its parent."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.current_process().daemon:
        return None
    if settings.host != socket.gethostname():
        return None
    begun = Path(settings.scratch, f"{os.getpid()}{BEGUN}")
    with suppress_and_log(_log, "if this process is killed, that is not known"):
        make_scratch(settings.scratch)
        begun.touch()
    return begun


class Once:
    """Calls a function once, and only in this process."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function, self._process = function, os.getpid()

    def __call__(self) -> None:
        if self._process == os.getpid():
            self._process = 0
            self._function()


def _leave(
    settings: RunSettings,
    session: Session,
    others: OtherRanks,
    begun: Path | None,
    is_saved: Callable[[Note | None], None],
) -> None:
    try:
        note = None
        try:
            note = _leave_note(settings, session)
        finally:
            if begun is not None:
                begun.unlink(missing_ok=True)
            is_saved(note)  # last, as Ray's driver may then end, which kills this process
        place = find_job_place()
        if place and not place.rank and has_other_nodes(place):
            others.wait(place)  # the first process of this host reports on other hosts, too
    except Exception as error:  # the process is to end as without us
        log_caught(_log, error, "a followed process has left no profile", logging.WARNING)


def _leave_note(settings: RunSettings, session: Session) -> Note | None:
    profiles = session.profiles(settings.threshold)
    if not profiles and not session.problems:
        return None
    note = save_and_note(settings, profiles, session.problems, followed=True)
    if settings.host == note.host:
        leave_in_scratch(note, settings.scratch)
    return note


def _script_folder() -> str:
    """Return the folder of the script that this process runs; it may run none."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    return os.path.dirname(os.path.realpath(script)) if script else os.getcwd()


def _outputs(settings: RunSettings) -> Callable[[], Sequence[Periodic]] | None:
    """Return where a rank exports its figures. Other processes would share a file or a port."""
    if settings.export is None or find_job_place() is None:
        return None
    return LiveOptions(False, 10.0, settings.export, settings.export_every).outputs()
