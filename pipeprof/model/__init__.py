"""Every frozen type that is saved or crosses a room. Standard library only.

Units, in Python and in the JSON alike: times and durations in seconds (``_s``), sizes in bytes,
rates per second (``_per_s``), shares 0..1. ``None`` means unknown, never zero.
The words are those of ``docs/how-it-measures.md``.
"""

from pipeprof.model.comparison import (
    COMPARISON_SCHEMA,
    Change,
    Compared,
    Comparison,
    Difference,
    Speed,
    TwoRuns,
)
from pipeprof.model.conditions import (
    NOT_INSPECTED,
    CacheState,
    DataSource,
    Environment,
    LoaderConfig,
    Skipped,
)
from pipeprof.model.conversion import Conversion, ConversionSpec, Copy, Gain, Sample
from pipeprof.model.headspace import Headspace
from pipeprof.model.profile import (
    PROFILE_SCHEMA,
    Ceiling,
    Cost,
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
from pipeprof.model.reading import OnError, ReadOptions
from pipeprof.model.recording import BatchLog, Epoch, MainProcess, Overhead, Recording
from pipeprof.model.requests import (
    NO_REQUESTS,
    STORAGE_PARTS,
    Histogram,
    LoneRequests,
    Percentiles,
    RequestFit,
    RequestLog,
    RequestStats,
)
from pipeprof.model.sizing import SIZING_SCHEMA, Figure, Sizing, SizingInput
from pipeprof.model.stages import Source, Span, Stage, StageStats
from pipeprof.model.sweep import (
    SWEEP_SCHEMA,
    CacheWanted,
    PairedRuns,
    SweepAdvice,
    SweepResult,
    SweepSpec,
    Trial,
    Untried,
)

__all__ = [
    "COMPARISON_SCHEMA",
    "NOT_INSPECTED",
    "NO_REQUESTS",
    "PROFILE_SCHEMA",
    "SIZING_SCHEMA",
    "STORAGE_PARTS",
    "SWEEP_SCHEMA",
    "BatchLog",
    "CacheState",
    "CacheWanted",
    "Ceiling",
    "Change",
    "Compared",
    "Comparison",
    "Conversion",
    "ConversionSpec",
    "Copy",
    "Cost",
    "DataSource",
    "DeviceUse",
    "Diagnosis",
    "Difference",
    "Environment",
    "Epoch",
    "Figure",
    "Finding",
    "Gain",
    "Headspace",
    "Histogram",
    "LoaderConfig",
    "LoneRequests",
    "MainProcess",
    "OnError",
    "Overhead",
    "PairedRuns",
    "Percentiles",
    "Profile",
    "QueueDepth",
    "ReadOptions",
    "Recommendation",
    "Recording",
    "RequestFit",
    "RequestLog",
    "RequestStats",
    "Sample",
    "Sizing",
    "SizingInput",
    "Skipped",
    "Source",
    "Span",
    "Speed",
    "Stage",
    "StageStats",
    "SweepAdvice",
    "SweepResult",
    "SweepSpec",
    "Throughput",
    "Trial",
    "TwoRuns",
    "Untried",
    "Verdict",
    "WorkerStats",
]
