"""Follow a loader while it is iterated, for what shows or exports its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeprof.loaders.instrument.iterator import TimedPass
from pipeprof.loaders.live.metrics import LiveFigures
from pipeprof.report.live import LiveView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeprof.loaders.instrument.inline_observer import Observer
    from pipeprof.loaders.instrument.iterator import PassOwner
    from pipeprof.loaders.live.periodic import Periodic
    from pipeprof.measure.loader_pass import Pass


@dataclass
class Progress:
    """How far an epoch is."""

    epoch: int
    """Counted from 1."""
    length: int | None
    """Batches that the epoch has."""
    batches: int = 0


class LiveLoader:
    """What is shown of one loader, over all of its passes, and where it is shown."""

    def __init__(self, name: str, outputs: Sequence[Periodic], in_parts: bool = False) -> None:
        """Begin without figures. ``in_parts``: an epoch is delivered in parts, by several loaders
        with a profiler each, and begins when `begin_epoch` is called."""
        self.name = name
        self.outputs = tuple(outputs)
        self.in_parts = in_parts
        self.figures = LiveFigures()
        self._progress = Progress(0, None)

    def add(self, outputs: Sequence[Periodic]) -> None:
        """Show the loader in these places, too."""
        self.outputs = tuple(dict.fromkeys((*self.outputs, *outputs)))

    def begin_epoch(self, length: int | None) -> None:
        """Begin an epoch of ``length`` batches; ``None`` where that is unknown."""
        self._progress = Progress(self._progress.epoch + 1, length)

    def begin_pass(self, length: int | None) -> Progress:
        """Begin a pass, and return the progress of its epoch."""
        if not self.in_parts:
            self.begin_epoch(length)
        return self._progress


class LivePass(TimedPass):
    """A `TimedPass` whose figures are shown whenever that is due."""

    __slots__ = ("_live", "_outputs", "_progress")

    def __init__(
        self,
        iterator: Iterator[Any],
        owner: PassOwner,
        loader_pass: Pass,
        observer: Observer,
        live: LiveLoader,
        length: int | None,
    ) -> None:
        """Begin to show the pass, which has ``length`` batches."""
        super().__init__(iterator, owner, loader_pass, observer)
        self._live, self._outputs = live, live.outputs
        self._progress = live.begin_pass(length)
        for output in self._outputs:
            output.begin(self)

    @property
    def name(self) -> str:
        """The name of the loader."""
        return self._live.name

    def take(self) -> Any:
        """Return the next batch."""
        batch = super().take()
        self._progress.batches += 1
        for output in self._outputs:
            if output.now() >= output.due_s:
                output.show(self)
        return batch

    def view(self) -> LiveView:
        """Return the figures that are known by now."""
        self._pass.flush()
        at = self._progress
        return self._live.figures.complete(
            LiveView(self.name, at.epoch, at.batches, at.length, only_timed=self.only_timed)
        )

    def metrics(self) -> dict[str, float]:
        """Return the figures that are known by now, by their names in `pipeprof.Profile.metrics`,
        and running totals."""
        self._pass.flush()
        return self._live.figures.metrics() | {"epoch": self._progress.epoch}

    def last_metrics(self) -> Callable[[], dict[str, float]]:
        """Return a function for `metrics` after the pass has ended, which does not keep it."""
        fill, figures, epoch = self._pass.fill_ended, self._live.figures, self._progress.epoch

        def metrics() -> dict[str, float]:
            fill()
            return figures.metrics() | {"epoch": epoch}

        return metrics

    def add_cost(self, seconds: float) -> None:
        """Note the time that was spent on showing this pass."""
        self._owner.live_s += seconds

    def _leave(self) -> None:
        super()._leave()
        if self._live.in_parts:  # rows of the next part follow
            self._pass.fill_ended()
        for output in self._outputs:
            output.end(self)
