"""What `pipeprof run` does in each process of a script, and how processes that it starts know."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.loaders.autopatch.call_sites import CallSites
from pipeprof.loaders.autopatch.overrides import parse_override
from pipeprof.loaders.autopatch.session import Session

if TYPE_CHECKING:
    from pipeprof.loaders.live.periodic import Periodic
    from pipeprof.loaders.tune.tuned_loader import TunedLoader

FOLLOW = "PIPEPROF_FOLLOW"
"""Variable with the settings, as JSON. ``startup/sitecustomize.py`` looks for it."""
_HOOK = Path(__file__).parent.parent / "loaders" / "autopatch" / "startup"


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run that hold for all of its processes."""

    overrides: tuple[str, ...]
    """As the user wrote them."""
    whole: bool
    tuned: str | None
    """File that keeps what was found, absolute; ``None`` where nothing is tuned."""
    export: str | None
    export_every: float
    threshold: float
    out: str
    """Folder for the profiles: an absolute path, or a URL."""
    html: bool
    quiet: bool
    follow: bool
    """Whether processes that the script starts are measured, too."""
    scratch: str
    """Folder for what these processes leave for the first one. Whoever needs it first makes it, and
    the first process removes it at its end."""
    host: str
    """Where that folder is."""

    def session(
        self,
        folder: str,
        outputs: Callable[[], Sequence[Periodic]] | None,
        in_fork: Callable[[], None],
    ) -> Session:
        """Return a session, not yet installed, that names files of the script in ``folder``
        relative to it. ``in_fork`` is called in a forked process that is to be measured."""
        return Session(
            CallSites(folder),
            [parse_override(text) for text in self.overrides],
            outputs,
            self.whole,
            partial(_tune, Path(self.tuned), self.quiet) if self.tuned else None,
            in_fork if self.follow else None,
        )

    def hand_on(self, variables: MutableMapping[str, str] = os.environ) -> None:
        """Have each Python that starts with these ``variables`` measured, too."""
        variables[FOLLOW] = json.dumps(asdict(self))
        paths = variables.get("PYTHONPATH", "").split(os.pathsep)
        if str(_HOOK) not in paths:
            variables["PYTHONPATH"] = os.pathsep.join([str(_HOOK), *filter(None, paths)])

    @staticmethod
    def handed_on() -> RunSettings:
        """Return the settings that `hand_on` left. Raises ValueError or TypeError for others."""
        given = json.loads(os.environ[FOLLOW])
        return RunSettings(**given | {"overrides": tuple(given["overrides"])})


def _tune(file: Path, quiet: bool, name: str, loader: Any) -> TunedLoader:
    """Tune ``loader``, and say what will not stay the same. This imports torch, which the script
    has imported by then."""
    from pipeprof.loaders.tune.tune import tune

    tuned = tune(loader, tuned=file)
    tuning = tuned.tuning()
    if tuning.state != "off" and not quiet:
        for note in tuning.notes:
            click.echo(f"pipeprof: {name}, to be tuned: {note}", err=True)
    return tuned
