"""Define the frozen types that are saved, or that pass between packages. They need only the
standard library.

Units are the same in Python and in JSON: times and durations in seconds (``_s``), sizes in bytes,
rates per second (``_per_s``), shares from 0 to 1. ``None`` means unknown, never zero.
``docs/concepts.md`` defines the terms.
"""

from pipeprof.model.advice import Cost as Cost
from pipeprof.model.advice import Finding as Finding
from pipeprof.model.advice import Recommendation as Recommendation
from pipeprof.model.advice import Speedup as Speedup
from pipeprof.model.advice import Worth as Worth
from pipeprof.model.comparison import COMPARISON_SCHEMA as COMPARISON_SCHEMA
from pipeprof.model.comparison import Change as Change
from pipeprof.model.comparison import Compared as Compared
from pipeprof.model.comparison import Comparison as Comparison
from pipeprof.model.comparison import Difference as Difference
from pipeprof.model.comparison import RankSkew as RankSkew
from pipeprof.model.comparison import Speed as Speed
from pipeprof.model.comparison import TwoRuns as TwoRuns
from pipeprof.model.conditions import NOT_INSPECTED as NOT_INSPECTED
from pipeprof.model.conditions import CacheState as CacheState
from pipeprof.model.conditions import DataSource as DataSource
from pipeprof.model.conditions import Environment as Environment
from pipeprof.model.conditions import LoaderConfig as LoaderConfig
from pipeprof.model.conditions import Skipped as Skipped
from pipeprof.model.conversion import Conversion as Conversion
from pipeprof.model.conversion import ConversionSpec as ConversionSpec
from pipeprof.model.conversion import Copy as Copy
from pipeprof.model.conversion import Gain as Gain
from pipeprof.model.conversion import Sample as Sample
from pipeprof.model.headspace import Headspace as Headspace
from pipeprof.model.pauses import BY_LENGTH as BY_LENGTH
from pipeprof.model.pauses import PauseEvidence as PauseEvidence
from pipeprof.model.pauses import PauseKind as PauseKind
from pipeprof.model.pauses import PauseStats as PauseStats
from pipeprof.model.profile import PROFILE_SCHEMA as PROFILE_SCHEMA
from pipeprof.model.profile import AsSteps as AsSteps
from pipeprof.model.profile import Ceiling as Ceiling
from pipeprof.model.profile import DeviceUse as DeviceUse
from pipeprof.model.profile import Diagnosis as Diagnosis
from pipeprof.model.profile import Pauses as Pauses
from pipeprof.model.profile import Profile as Profile
from pipeprof.model.profile import QueueDepth as QueueDepth
from pipeprof.model.profile import TableName as TableName
from pipeprof.model.profile import Throughput as Throughput
from pipeprof.model.profile import Verdict as Verdict
from pipeprof.model.profile import WorkerStats as WorkerStats
from pipeprof.model.reading import OnError as OnError
from pipeprof.model.reading import ReadOptions as ReadOptions
from pipeprof.model.recording import UNWATCHED as UNWATCHED
from pipeprof.model.recording import BatchLog as BatchLog
from pipeprof.model.recording import Epoch as Epoch
from pipeprof.model.recording import Indexing as Indexing
from pipeprof.model.recording import MainProcess as MainProcess
from pipeprof.model.recording import Overhead as Overhead
from pipeprof.model.recording import Recording as Recording
from pipeprof.model.requests import NO_REQUESTS as NO_REQUESTS
from pipeprof.model.requests import STORAGE_PARTS as STORAGE_PARTS
from pipeprof.model.requests import Histogram as Histogram
from pipeprof.model.requests import LoneRequests as LoneRequests
from pipeprof.model.requests import Percentiles as Percentiles
from pipeprof.model.requests import RequestFit as RequestFit
from pipeprof.model.requests import RequestLog as RequestLog
from pipeprof.model.requests import RequestStats as RequestStats
from pipeprof.model.sizing import SIZING_SCHEMA as SIZING_SCHEMA
from pipeprof.model.sizing import Sizing as Sizing
from pipeprof.model.sizing import SizingFigure as SizingFigure
from pipeprof.model.sizing import SizingInput as SizingInput
from pipeprof.model.stages import Source as Source
from pipeprof.model.stages import Span as Span
from pipeprof.model.stages import Stage as Stage
from pipeprof.model.stages import StageStats as StageStats
from pipeprof.model.sweep import SWEEP_SCHEMA as SWEEP_SCHEMA
from pipeprof.model.sweep import CacheWanted as CacheWanted
from pipeprof.model.sweep import PairedRuns as PairedRuns
from pipeprof.model.sweep import RunNoise as RunNoise
from pipeprof.model.sweep import SweepAdvice as SweepAdvice
from pipeprof.model.sweep import SweepResult as SweepResult
from pipeprof.model.sweep import SweepSpec as SweepSpec
from pipeprof.model.sweep import Trial as Trial
from pipeprof.model.sweep import Untried as Untried
from pipeprof.model.tuning import Fed as Fed
from pipeprof.model.tuning import TriedSetting as TriedSetting
from pipeprof.model.tuning import TunedSetting as TunedSetting
from pipeprof.model.tuning import Tuning as Tuning
from pipeprof.model.tuning import TuningState as TuningState
