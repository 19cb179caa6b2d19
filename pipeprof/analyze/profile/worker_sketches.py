"""Keep the running figures of each worker's stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, MutableMapping

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.profile.histogram import Sketch
from pipeprof.analyze.profile.stage_times import IN_WORKER
from pipeprof.model import Stage, StageStats

INSIDE = (Stage.READ, Stage.DECODE, Stage.TRANSFORM)
"""Stages that are not known of a data set that is opaque."""


class WorkerSketches:
    """Figures of the stages of one worker."""

    def __init__(self) -> None:
        self.batches = 0
        self.stages: defaultdict[str, Sketch] = defaultdict(Sketch)


def add_workers(
    workers: MutableMapping[int, WorkerSketches], columns: Columns, seconds: Mapping[Stage, Floats]
) -> None:
    """Add the batches of ``columns`` to the workers that fetched them. ``seconds`` are the times of
    each stage. [batches]"""
    for number in np.unique(columns.worker[columns.worker > -2]):
        own = columns.worker == number
        worker = workers[int(number)]
        worker.batches += int(own.sum())
        for stage in IN_WORKER:
            worker.stages[str(stage)].add(seconds[stage][own])


def measured(sketches: Mapping[str, Sketch]) -> dict[str, StageStats]:
    """Return figures of what was measured, without the stages inside an opaque data set."""
    return {
        name: sketch.stats("measured")
        for name, sketch in sketches.items()
        if sketch.count and (sketch.total or name not in INSIDE)
    }
