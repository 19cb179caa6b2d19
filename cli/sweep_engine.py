"""Choose what runs the trials of `pipeprof sweep`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.options import json_object
from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from pipeprof.sweep.engines.engine import Engine

_JOBS = "slurm-jobs"
"""Where the logs of Slurm's jobs are, in the folder of the results."""


def add_engine_options(command: Any) -> Any:
    """Add the options that choose the engine."""
    command = click.option(
        "--on-options", "engine_options", type=json_object, default=None, metavar="JSON",
        help="Options of Ray's tasks, or parameters of submitit, for --on: resources, partition, "
        "container, environment of the node.",
    )(command)  # fmt: skip
    return click.option(
        "--on", "engine_name", default=None, metavar="ENGINE",
        help="Run the trials on a node of a cluster: ray, ray:ADDRESS or slurm.",
    )(command)  # fmt: skip


@contextmanager
def open_engine(
    name: str | None, options: dict[str, Any] | None, folder: Path, script: str | None
) -> Iterator[Engine]:
    """Yield the engine of ``--on``.

    Args:
        name: ``ray``, ``ray:ADDRESS`` or ``slurm``; ``None`` for this process.
        options: Those of ``--on-options``.
        folder: The folder of the results.
        script: That of ``--script``.

    Raises:
        UsageError: There is no such engine, or it does not suit the other options.
    """
    from pipeprof.sweep.engines.engine import HERE

    kind, _, address = (name or "").partition(":")
    if not kind:
        if options:
            raise UsageError("--on-options are for --on; give that, too")
        yield HERE
        return
    if script is not None:
        raise UsageError("--script runs on this machine; with --on, give URLs or --loader")
    engine: Engine
    if kind == "ray":
        from pipeprof.sweep.engines.on_ray import RayEngine

        engine = RayEngine(address or "auto", options or {})
    elif kind == "slurm" and not address:
        from pipeprof.sweep.engines.on_slurm import SlurmEngine

        engine = SlurmEngine(folder / _JOBS, options or {})
    else:
        raise UsageError(f"--on {name} is unknown; it is ray, ray:ADDRESS or slurm")
    with closing(engine):
        yield engine
