"""Define the callbacks by which a sweep reports its progress."""

from __future__ import annotations

from pipeprof.model import Trial
from pipeprof.sweep.plan import TrialSetting


class SweepListener:
    """Ignores the progress of a sweep; `pipeprof.cli.sweep_progress` shows it."""

    def begin(self, done: int, planned: int) -> None:
        """The trials begin, ``done`` of which ran before."""

    def started(self, setting: TrialSetting) -> None:
        """A trial begins."""

    def ticked(self, share: float) -> None:
        """The running trial is done to this share, 0..1."""

    def finished(self, trial: Trial) -> None:
        """A trial has ended and is saved."""

    def repeating(self, setting: TrialSetting) -> None:
        """One of the trials runs again, to measure the noise between runs."""

    def writing(self, name: str, share: float) -> None:
        """The copy ``name`` of the sample is written to this share, 0..1."""

    def pairing(self, setting: TrialSetting, number: int, planned: int) -> None:
        """The short run ``number`` of two alternating settings begins."""
