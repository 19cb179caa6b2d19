"""Define the sweep: the settings to try, the result of each trial, and the recommended setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal

from pipeprof.model.advice import Recommendation
from pipeprof.model.conditions import NOT_INSPECTED, CacheState, Environment, LoaderConfig
from pipeprof.model.conversion import Conversion, ConversionSpec
from pipeprof.model.headspace import Headspace
from pipeprof.model.local_cache import LocalCache
from pipeprof.model.profile import Verdict
from pipeprof.model.reading import OnError, ReadOptions
from pipeprof.model.repeated_runs import Multiple, PairedRuns, RunNoise
from pipeprof.model.row_orders import RowOrders

SWEEP_SCHEMA: Final = "pipeprof.sweep/1"

CacheWanted = Literal["cold", "warm", "as-is"]
"""State of local files at the start of a trial: evicted from memory, read into it, or unchanged."""
MOST_HALF_WIDTH: Final = 0.3
"""Half width of an interval, relative to its number. Of a wider one the number is not shown."""


@dataclass(frozen=True)
class SweepSpec:
    """What a sweep is to try. Two sweeps with the same spec are the same sweep."""

    urls: tuple[str, ...]
    """URLs without secrets; for a user's own loader or script, its name."""
    workers: tuple[int, ...]
    prefetch: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    """May be empty for a user's own loader or script, which then uses its own batch size."""
    step_s: float | None
    """The emulated accelerator's step on a batch of the first size; other sizes in proportion.
    ``None`` when ``step`` or ``script`` provides the step."""
    accelerator: str | None = None
    """The accelerator to emulate, e.g. ``retinanet/b200`` of MLPerf Storage."""
    step: str | None = None
    """The user's training step, ``module:function``."""
    transform: str | None = None
    """The user's transform of a batch, ``module:function``."""
    columns: tuple[str, ...] | None = None
    """Columns to read; ``None``: all."""
    trial_s: float = 3.0
    """Minimum measured time of a trial."""
    warmup_s: float = 1.0
    """Minimum time at the start of a trial that is not measured."""
    threshold: float = 0.05
    """Starved fraction from which a run counts as starved."""
    cache: CacheWanted = "cold"
    """Requested cache state; `Trial.cache` has the actual one."""
    read: ReadOptions = field(default_factory=ReadOptions)
    """How to read from storage. A cold trial also evicts what it has read."""
    conversion: ConversionSpec | None = None
    """Formats and storages to try in addition to the original data."""
    on_error: OnError = "fail"
    """What to do with unreadable data."""
    s3_client: str | None = None
    """Requested S3 client; ``None``: pipeprof chooses."""
    with_options: bool = False
    """Whether other storage options were given, which are never saved."""
    loader: str | None = None
    """The user's function that creates the loader, ``module:function``, instead of data sets."""
    script: str | None = None
    """The user's training script with its arguments, instead of data sets."""
    exhaustive: bool = True
    """Whether every setting is tried, or only those that can change the answer."""
    local_cache: str | None = None
    """Measure what a cache in this folder is worth, at the best setting of each data set."""
    local_cache_bytes: int | None = None
    """The most that it may hold; ``None``: what the disk has."""
    shuffle: tuple[str, ...] = ()
    """Orders of rows to compare at the best setting of each data set; trials read in the order of
    the files."""

    @property
    def own(self) -> str | None:
        """The loader or script that is tried instead of data sets."""
        return self.loader or self.script


@dataclass(frozen=True)
class Trial:
    """The result of running one setting of a sweep."""

    url: str
    format: str
    config: LoaderConfig
    profile: str
    """File name of its profile, relative to the sweep's own file."""
    samples_per_s: float
    interval: tuple[float, float]
    """95 % interval for the samples/s of another run of the same length, including how much runs
    differ (`RunNoise`). In a sweep with ``conversion`` it equals ``own_interval``."""
    spread: float
    """(max - min) / median of ``samples_per_s`` over five equal windows of the trial."""
    starved_fraction: float
    starved_interval: tuple[float, float]
    verdict: Verdict
    bottleneck: str | None
    bytes_per_sample: float
    """Logical bytes read from storage."""
    demand_samples_per_s: float | None = None
    """The rate at which the accelerator would consume samples if it never waited."""
    cache: CacheState = NOT_INSPECTED
    physical_bytes_per_sample: float | None = None
    """Bytes that devices transferred while measuring; ``None`` where the kernel does not count
    them."""
    cpu_s_per_sample: float | None = None
    """CPU time of the threads that fetched the batches, over the whole trial."""
    decode_s_per_sample: float | None = None
    """Time to decode bytes into arrays, over the whole trial."""
    predicted_samples_per_s: float | None = None
    """The rate predicted before the trial ran; ``None``: there was no prediction."""
    has_step: bool = True
    """Whether the loop did any work on the batches, see `Diagnosis`."""
    reader: str | None = None
    """The reader that ``url`` names; ``None``: the format's own decoder."""
    own_interval: tuple[float, float] | None = None
    """95 % interval of the mean of this run, from its batches alone. ``None``: an older sweep,
    whose ``interval`` has that meaning."""
    drift: float | None = None
    """Relative standard deviation between parts of the trial beyond chance, caused by a machine of
    varying speed. ``None``: too few batches."""

    @property
    def data_url(self) -> str:
        """The URL of the data, without the reader."""
        return self.url.removeprefix(f"{self.reader}::") if self.reader else self.url

    @property
    def by_reader(self) -> str:
        """`` by polars`` behind the name of the data; empty for the format's own decoder."""
        return f" by {self.reader}" if self.reader else ""


@dataclass(frozen=True)
class Untried:
    """A setting of the grid that was left out because it could not change the answer."""

    url: str
    batch_size: int | None
    num_workers: int
    prefetch_factor: int | None
    samples_per_s: float
    """Predicted rate."""
    at_most: float
    """Upper bound with 95 % confidence of another run of the same length on this machine."""
    at_least: float | None = None
    """Lower bound with 95 % confidence. ``None``: an older sweep."""
    may_be_faster: bool = False
    """Whether it may be faster than all tried settings of its data set, but not as fast as another
    form of the same data."""

    @property
    def is_range(self) -> bool:
        """Whether the bounds are too far apart for a number: by more than `MOST_HALF_WIDTH`."""
        if self.at_least is None:
            return False
        return self.at_most - self.at_least > 2 * MOST_HALF_WIDTH * self.samples_per_s


@dataclass(frozen=True)
class SweepAdvice:
    """The recommendation of a sweep for one data set."""

    url: str
    format: str
    headline: str
    best_trial: int
    """Index into ``trials`` of the cheapest setting that feeds the accelerator, else of the
    cheapest within 3 % of the fastest. Where two were run in pairs, it is the one with the higher
    mean in the pairs, or the cheaper one where the means differ by less than 3 %."""
    recommendation: Recommendation | None
    """The change from the first setting tried to the best."""
    against_first: Multiple | None = None
    """``None`` for the first data set, for copies of a conversion, and in an older sweep."""


@dataclass(frozen=True)
class SweepResult:
    """The trials of one sweep, and the recommended settings. The file is saved again after each
    trial.

    Times are in seconds (``_s``), sizes in bytes, rates per second (``_per_s``) and shares 0 to 1.
    ``docs/sweep.schema.json`` describes the saved JSON.

    Examples:
        >>> sweep = pipeprof.load("pipeprof-results/sweep-20260131-142501/sweep.json")
        >>> best = sweep.trials[sweep.advice[0].best_trial]
        >>> best.config.num_workers, best.samples_per_s
        (1, 606.5)
    """

    created: str
    spec: SweepSpec
    environment: Environment
    trials: tuple[Trial, ...] = ()
    planned: int = 0
    """Number of trials in the grid."""
    advice: tuple[SweepAdvice, ...] = ()
    notes: tuple[str, ...] = ()
    conversion: Conversion | None = None
    """Result of `SweepSpec.conversion`."""
    headspace: Mapping[str, Headspace] = field(default_factory=dict)
    """URL → its best setting compared with data that cost nothing, once all trials of the URL have
    run."""
    local_cache: Mapping[str, LocalCache] = field(default_factory=dict)
    """URL → what `SweepSpec.local_cache` is worth, once all trials of the URL have run."""
    row_orders: Mapping[str, RowOrders] = field(default_factory=dict)
    """URL → what the orders of `SweepSpec.shuffle` cost, once all trials of the URL have run."""
    paired: Mapping[str, PairedRuns] = field(default_factory=dict)
    """URL → its best setting compared with the next, where single trials did not decide."""
    noise: Mapping[str, RunNoise] = field(default_factory=dict)
    """URL → how much its runs differ, once all its trials have run. It needs two trials, and is
    absent where ``conversion`` has a control."""
    untried: tuple[Untried, ...] = ()
    """Settings left out by a sweep that is not exhaustive, once all its trials have run."""
    schema: Literal["pipeprof.sweep/1"] = SWEEP_SCHEMA

    @property
    def finished(self) -> bool:
        """Whether all planned trials have run."""
        if self.conversion is not None and self.conversion.control not in range(len(self.trials)):
            return False
        return len(self.trials) + len(self.untried) >= self.planned

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    if TYPE_CHECKING:  # bound by `pipeprof.results`

        def to_arrow(self) -> Any:
            """Return a row for each trial; units are in the columns' names, null is unknown."""

        def to_pandas(self) -> Any:
            """Return the table of `to_arrow` as a DataFrame.

            Raises:
                PipeprofError: pandas is not installed.
            """

        def save(self, path: str | PathLike[str]) -> None:
            """Write JSON to ``path``, whole or not at all.

            Raises:
                OutputError: The file cannot be written.
            """

        def _repr_html_(self) -> str: ...
