"""Every frozen type that is saved or crosses a room. Standard library only.

Units, in Python and in the JSON alike: times and durations in seconds (``_s``), sizes in bytes,
rates per second (``_per_s``), shares 0..1. ``None`` means unknown, never zero.
The words are those of ``docs/how-it-measures.md``.
"""

from pipeprof.model.conditions import (
    NOT_INSPECTED,
    CacheState,
    DataSource,
    Environment,
    LoaderConfig,
)
from pipeprof.model.headspace import Headspace
from pipeprof.model.profile import (
    PROFILE_SCHEMA,
    Ceiling,
    DeviceUse,
    Diagnosis,
    Finding,
    Profile,
    QueueDepth,
    Recommendation,
    Throughput,
    Verdict,
    WorkerStats,
)
from pipeprof.model.recording import BatchLog, Epoch, MainProcess, Overhead, Recording
from pipeprof.model.sizing import SIZING_SCHEMA, Figure, Sizing, SizingInput
from pipeprof.model.stages import Source, Span, Stage, StageStats
from pipeprof.model.sweep import (
    SWEEP_SCHEMA,
    CacheWanted,
    SweepAdvice,
    SweepResult,
    SweepSpec,
    Trial,
)

__all__ = [
    "NOT_INSPECTED",
    "PROFILE_SCHEMA",
    "SIZING_SCHEMA",
    "SWEEP_SCHEMA",
    "BatchLog",
    "CacheState",
    "CacheWanted",
    "Ceiling",
    "DataSource",
    "DeviceUse",
    "Diagnosis",
    "Environment",
    "Epoch",
    "Figure",
    "Finding",
    "Headspace",
    "LoaderConfig",
    "MainProcess",
    "Overhead",
    "Profile",
    "QueueDepth",
    "Recommendation",
    "Recording",
    "Sizing",
    "SizingInput",
    "Source",
    "Span",
    "Stage",
    "StageStats",
    "SweepAdvice",
    "SweepResult",
    "SweepSpec",
    "Throughput",
    "Trial",
    "Verdict",
    "WorkerStats",
]
