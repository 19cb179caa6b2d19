"""Create what consumes the batches of a sweep: an emulated accelerator, or the user's own step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import SweepSpec
from pipeprof.sweep.own_loader import OwnLoader
from pipeprof.sweep.own_script import split_command
from pipeprof.sweep.references import Reference


@dataclass(frozen=True)
class Consumer:
    """The training step of a trial, called for each batch."""

    label: str
    step: Callable[[Any], Any]


def make_consumer(spec: SweepSpec, batch_size: int | None) -> Consumer:
    """Create the consumer of batches of ``batch_size``; None takes the emulated step as given.
    Raises `UsageError` or `PipeprofError` when the user's step cannot be loaded."""
    if spec.step is not None:
        step = Reference(spec.step)
        step.load()
        return Consumer(f"your own step, {spec.step}", step)
    scale = batch_size / spec.batch_sizes[0] if batch_size is not None else 1.0
    emulated = EmulatedAccelerator((spec.step_s or 0.0) * scale, name=spec.accelerator)
    return Consumer(emulated.label, emulated.step)


def consumer_label(spec: SweepSpec) -> str:
    """Return the label of the sweep's consumer. Raises what `make_consumer` raises."""
    if spec.script is not None:
        return f"the step of your own script, {spec.script}"
    return make_consumer(spec, None).label


def check_own(spec: SweepSpec) -> None:
    """Check that the user's own transform, loader or script exists and takes what the sweep varies.
    Raises `UsageError`, `PipeprofError`."""
    if spec.transform is not None:
        Reference(spec.transform).load()
    if spec.script is not None:
        split_command(spec.script)
    elif spec.loader is not None:
        varied = {"prefetch_factor": len(spec.prefetch) > 1, "batch_size": bool(spec.batch_sizes)}
        OwnLoader(spec.loader).check([name for name in varied if varied[name]])
