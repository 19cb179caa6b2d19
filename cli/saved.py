"""Files that hold a profile or a sweep, as a user names them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeprof.model import Profile


def locate(file: str, command: str) -> Path:
    """The file to open for ``command``; of a sweep's folder the one in it. Raises `UsageError`,
    `ProfileError`."""
    from pipeprof.errors import ProfileError, UsageError
    from pipeprof.storage.urls import is_local, local_path, redact
    from pipeprof.store import SWEEP_FILE

    if not is_local(file):
        raise UsageError(f"{command} reads local files; copy {redact(file)} to this machine first.")
    path = Path(local_path(file)) if file.startswith("file://") else Path(file)
    if not path.is_dir():
        return path
    if not (path / SWEEP_FILE).is_file():
        raise ProfileError(
            f"{path} is a folder without {SWEEP_FILE}; name a saved profile, or a sweep's folder."
        )
    return path / SWEEP_FILE


def load_profile(path: str | Path) -> Profile:
    """Raises `ProfileError`, and `UsageError` for a sweep."""
    from pipeprof.errors import UsageError
    from pipeprof.model import Profile
    from pipeprof.store import load

    found = load(path)
    if not isinstance(found, Profile):
        raise UsageError(f"{path} is a sweep; name the profile of one of its trials.")
    return found


def refuse_itself(path: Path, out: Path) -> None:
    """Raises `UsageError` where the report would take the place of what it tells of."""
    from pipeprof.errors import UsageError

    if os.path.isfile(out) and os.path.isfile(path) and out.samefile(path):
        raise UsageError(f"--html {out} is the file itself; name another.")
