"""Locate and load the saved profiles and sweeps that a user names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeprof.model import Profile


def locate(file: str, command: str) -> Path:
    """Return the file to open for ``command``: ``file`` itself, or the one in the folder of a
    sweep. Raises `UsageError` and `ProfileError`."""
    from pipeprof.errors import ProfileError, UsageError
    from pipeprof.storage.urls import is_local, local_path, redact
    from pipeprof.store import SWEEP_FILE

    if not is_local(file):
        raise UsageError(
            f"{command} reads only local files; copy {redact(file)} to this machine first."
        )
    path = Path(local_path(file)) if file.startswith("file://") else Path(file)
    if not path.is_dir():
        return path
    if not (path / SWEEP_FILE).is_file():
        raise ProfileError(
            f"{path} is a folder without {SWEEP_FILE}; name a saved profile, or a sweep's folder."
        )
    return path / SWEEP_FILE


def load_profile(path: str | Path) -> Profile:
    """Load a profile. Raises `ProfileError`, and `UsageError` for a sweep."""
    from pipeprof.errors import UsageError
    from pipeprof.model import Profile
    from pipeprof.store import load

    profile = load(path)
    if not isinstance(profile, Profile):
        raise UsageError(f"{path} is a sweep; name the profile of one of its trials.")
    return profile


def refuse_overwrite(path: Path, out: Path) -> None:
    """Raise `UsageError` where the report would overwrite the file that it describes."""
    from pipeprof.errors import UsageError

    if os.path.isfile(out) and os.path.isfile(path) and out.samefile(path):
        raise UsageError(f"--html {out} is the input file; name another.")


def load_probe(file: str) -> dict[str, Any]:
    """Load what ``pipeprof probe --json`` printed. Raises `UsageError`."""
    import orjson

    from pipeprof.errors import UsageError

    try:
        found = orjson.loads(Path(file).read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(f"{file} is no result of `pipeprof probe --json`")
    return found
