"""Who is told how a sweep goes."""

from __future__ import annotations

from typing import Protocol

from pipeprof.model import Trial
from pipeprof.sweep.grid import TrialSetting


class Watcher(Protocol):
    """Told how a sweep goes; `pipeprof.cli.sweep` draws it."""

    def begin(self, done: int, planned: int) -> None: ...

    def started(self, setting: TrialSetting) -> None: ...

    def ticked(self, share: float) -> None:
        """Of the running trial."""
        ...

    def finished(self, trial: Trial) -> None: ...

    def repeating(self, setting: TrialSetting) -> None:
        """After the trials, one of them runs again."""
        ...

    def writing(self, name: str, share: float) -> None:
        """A copy of the sample, before the trials."""
        ...

    def pairing(self, setting: TrialSetting, number: int, planned: int) -> None:
        """After the trials, short runs of two settings by turns: that with ``number`` begins."""
        ...
