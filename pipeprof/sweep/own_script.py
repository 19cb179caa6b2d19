"""Run the user's unmodified script under `pipeprof run --set …`, once for each setting."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.model import Profile, Recording
from pipeprof.store import load
from pipeprof.sweep.plan import TrialSetting

_LAST_LINES = 3
"""How many lines of a failed script's output its error message shows."""


def split_command(text: str) -> list[str]:
    """Split the arguments of ``python``, such as ``train.py --epochs 1`` or ``-m package.train``.
    Raises `UsageError` when there is no such script."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--script {text!r} cannot be split ({error})") from None
    if not words:
        raise UsageError("--script is empty; give it as you would to python: 'train.py --lr 1'")
    if words[0] == "python" or not (words[0] == "-m" or Path(words[0]).is_file()):
        raise UsageError(
            f"--script: {words[0]} is no file; give it without 'python': 'train.py --epochs 1'"
        )
    return words


def run_script(text: str, setting: TrialSetting, threshold: float, log: Path) -> Profile:
    """Run the script and return the profile of the loader that was iterated longest.

    The output of the script goes to ``log``. Raises `PipeprofError` when the script fails, or
    iterates no DataLoader.
    """
    with TemporaryDirectory(prefix="pipeprof-") as folder, log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "pipeprof", "run", "--quiet", "--threshold",
             f"{threshold:.6f}", "--out", folder, "--set", _overrides(setting),
             *split_command(text)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if done.returncode:
            raise PipeprofError(
                f"your script ended with exit code {done.returncode} with "
                f"{_overrides(setting)}: {_end_of(log)} (all its output is in {log})"
            )
        profiles = [load(path) for path in sorted(Path(folder).glob("**/*.json"))]
    loaders = [each for each in profiles if isinstance(each, Profile)]
    if not loaders:
        raise PipeprofError(
            "your script iterated no DataLoader, and no process that it started did, so there is "
            f"nothing to measure (all its output is in {log})"
        )
    return max(loaders, key=lambda profile: profile.wall_s)


def recording_of(profile: Profile) -> Recording:
    """Return the recording that belongs to a profile of `run_script`."""
    config = profile.config
    return Recording(
        name=profile.name,
        created=profile.created,
        config=config,
        environment=profile.environment,
        batches=profile.batches,
        warmup_batches=max(1, config.num_workers * (config.prefetch_factor or 1)),
        first_batch_s=profile.first_batch_s,
    )


def _overrides(setting: TrialSetting) -> str:
    names = ("num_workers", "prefetch_factor", "batch_size")
    values = ((name, getattr(setting, name)) for name in names)
    return ",".join(f"{name}={value}" for name, value in values if value is not None)


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return (
        " / ".join([line.strip() for line in lines if line.strip()][-_LAST_LINES:]) or "no output"
    )
