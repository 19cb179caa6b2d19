"""Where the figures of a running loader are shown or exported, by the arguments of the user."""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.loaders.live.exporter import EXPORT_S, exporter
from pipeprof.loaders.live.periodic import Periodic
from pipeprof.loaders.live.view import LINE_S, live_view


def make_outputs(
    live: bool, export: str | None, export_every: float = EXPORT_S, line_s: float = LINE_S
) -> Sequence[Periodic]:
    """Return the outputs that these arguments of `pipeprof.wrap` name. All loaders of a process
    share them. Lines of the live view come every ``line_s`` seconds.

    Raises:
        UsageError: ``export`` names nothing known, or ``export_every`` is no time.
        OutputError: The file or the port of ``export`` cannot be used.
    """
    outputs: list[Periodic] = []
    if live:
        view = live_view()
        view.line_s = line_s
        outputs.append(view)
    if export:
        outputs.append(exporter(export, export_every))
    return outputs
