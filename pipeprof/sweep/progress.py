"""Who hears how a sweep proceeds."""

from __future__ import annotations

from pipeprof.model import Trial
from pipeprof.sweep.plan import TrialSetting


class SweepListener:
    """Hears how a sweep proceeds and does nothing; `pipeprof.cli.sweep_progress` draws it."""

    def begin(self, done: int, planned: int) -> None:
        """So many trials are done already."""

    def started(self, setting: TrialSetting) -> None:
        """A trial begins."""

    def ticked(self, share: float) -> None:
        """Of the running trial so much is done."""

    def finished(self, trial: Trial) -> None:
        """A trial has ended and is saved."""

    def repeating(self, setting: TrialSetting) -> None:
        """After the trials, one of them runs again."""

    def writing(self, name: str, share: float) -> None:
        """Before the trials, a copy of the sample is written."""

    def pairing(self, setting: TrialSetting, number: int, planned: int) -> None:
        """After the trials, short runs of two settings alternate: that with ``number`` begins."""
