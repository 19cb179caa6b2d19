"""Show the progress of a sweep on stderr: a bar on a terminal, elsewhere one line per trial."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pipeprof.model import Trial
from pipeprof.storage.urls import redact
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.progress import SweepListener
from pipeprof.units import counted, format_count, format_share


class ProgressLines(SweepListener):
    """Prints a bar with the remaining time, and above it one line per finished trial."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        # no refresh thread: a lock that it holds while workers are forked stays locked in them
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f} trials"),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=self._console,
            auto_refresh=False,
            transient=True,
            speed_estimate_period=600,
        )
        self._task = self._progress.add_task("sweep", total=1)
        self._done = 0
        self._widest = 9
        """Width of the column of names, which grows with the longest so far."""

    def __enter__(self) -> ProgressLines:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def begin(self, done: int, planned: int) -> None:
        self._done = done
        self._progress.update(self._task, total=planned, completed=done)

    def started(self, setting: TrialSetting) -> None:
        self._draw(0.0, describe(setting))

    def ticked(self, share: float) -> None:
        self._draw(share)

    def finished(self, trial: Trial) -> None:
        self._done += 1
        verdict = trial.verdict if trial.has_step else "no step"
        name = _data(trial) + trial.by_reader
        self._widest = max(self._widest, len(name))
        self._console.print(
            f"  {self._done:3d}  {name:<{self._widest}} {_setting(trial):<35}"
            f"{format_count(trial.samples_per_s):>10} samples/s  "
            f"waits {format_share(trial.starved_fraction):>7}  {verdict}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        self._draw(0.0)

    def repeating(self, setting: TrialSetting) -> None:
        if not self._console.is_terminal:
            self._console.print("  repeating one trial, to measure how much runs differ")
        self._draw(0.0, f"repeating: {describe(setting)}")

    def writing(self, name: str, share: float) -> None:
        if share == 0.0 and not self._console.is_terminal:
            self._console.print(f"  writing the sample as {name}", markup=False, highlight=False)
        self._draw(0.0, f"writing the sample as {name}: {format_share(share)}")

    def pairing(self, setting: TrialSetting, number: int, planned: int) -> None:
        if number == 0 and not self._console.is_terminal:
            self._console.print("  repeating the best two settings, alternating")
        self._draw(0.0, f"alternating, {number + 1} of {planned}: {describe(setting)}")

    def _draw(self, share: float, description: str | None = None) -> None:
        self._progress.update(
            self._task, completed=self._done + share, description=description, refresh=False
        )
        if self._console.is_terminal:
            self._progress.refresh()


def describe(setting: TrialSetting) -> str:
    name = redact(setting.url).rstrip("/").rpartition("/")[2]
    return f"{name}: {counted(setting.num_workers, 'worker')}{_batch(setting.batch_size)}"


def _data(trial: Trial) -> str:
    """Return the format of a trial's data; of a copy the folder, which also says how it is
    written."""
    folder = trial.data_url.rstrip("/").rpartition("/")[2]
    return folder if folder.startswith(f"{trial.format}-") else trial.format


def _setting(trial: Trial) -> str:
    config = trial.config
    prefetch = f", prefetch {config.prefetch_factor}" if config.prefetch_factor else ""
    return f"{counted(config.num_workers, 'worker')}{prefetch}{_batch(config.batch_size)}"


def _batch(size: int | None) -> str:
    """Return the batch size as text; empty where it is unknown."""
    return f", batch {size}" if size else ""
