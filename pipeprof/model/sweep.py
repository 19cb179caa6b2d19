"""Many runs: what was asked, what each gave, what to set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal

from pipeprof.model.advice import Recommendation
from pipeprof.model.conditions import NOT_INSPECTED, CacheState, Environment, LoaderConfig
from pipeprof.model.conversion import Conversion, ConversionSpec
from pipeprof.model.headspace import Headspace
from pipeprof.model.profile import Verdict
from pipeprof.model.reading import OnError, ReadOptions

SWEEP_SCHEMA: Final = "pipeprof.sweep/1"

CacheWanted = Literal["cold", "warm", "as-is"]
"""What a trial begins with: files evicted from memory, read into it, or left as they are."""


@dataclass(frozen=True)
class SweepSpec:
    """What a sweep was asked to try. Two sweeps with the same spec are the same sweep."""

    urls: tuple[str, ...]
    """Without secrets. Of a loader or a script of the user's own, its name."""
    workers: tuple[int, ...]
    prefetch: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    """May be empty for a loader or a script of the user's own: then they are left to that."""
    step_s: float | None
    """The emulated accelerator's step on a batch of the first size; other sizes in proportion.
    ``None`` when the step is the user's own, by ``step`` or in ``script``."""
    accelerator: str | None = None
    """Whose step is emulated, e.g. ``retinanet/b200`` of MLPerf Storage."""
    step: str | None = None
    """The user's training step, ``module:function``."""
    transform: str | None = None
    """The user's transform of a batch, ``module:function``."""
    columns: tuple[str, ...] | None = None
    """Read; ``None``: all."""
    trial_s: float = 3.0
    """Least measured time of a trial."""
    warmup_s: float = 1.0
    """Least time of a trial that is left out first."""
    threshold: float = 0.05
    """The starved share that counts as starved."""
    cache: CacheWanted = "cold"
    """Asked for; what each trial had is in `Trial.cache`."""
    read: ReadOptions = field(default_factory=ReadOptions)
    """How bytes are asked of storage. A cold trial also forgets what it has read."""
    conversion: ConversionSpec | None = None
    """Formats and storages to try beside the data as it is."""
    on_error: OnError = "fail"
    """What to do with data that cannot be read."""
    s3_client: str | None = None
    """What was to read from S3; ``None``: that was left to us."""
    with_options: bool = False
    """Whether other storage options were given, which are never saved."""
    loader: str | None = None
    """The user's function that makes the loader, ``module:function``, in place of data sets."""
    script: str | None = None
    """The user's training script with its arguments, in place of data sets."""
    exhaustive: bool = True
    """Whether every setting is tried, or only those that can change the answer."""

    @property
    def own(self) -> str | None:
        """The loader or script that is tried instead of data sets."""
        return self.loader or self.script


@dataclass(frozen=True)
class Trial:
    """One setting of a sweep, run."""

    url: str
    format: str
    config: LoaderConfig
    profile: str
    """File name of its profile, relative to the sweep's own file."""
    samples_per_s: float
    interval: tuple[float, float]
    """95 % of the samples/s of one next run of as long, in this setting on this machine: holds by
    what runs differ (`RunNoise`). Of a sweep with ``conversion``, as ``own_interval``."""
    spread: float
    """(max - min) / median of ``samples_per_s`` over five equal windows of the trial."""
    starved_fraction: float
    starved_interval: tuple[float, float]
    verdict: Verdict
    bottleneck: str | None
    bytes_per_sample: float
    """Logical bytes asked of storage."""
    demand_samples_per_s: float | None = None
    """What the accelerator would take if it never waited."""
    cache: CacheState = NOT_INSPECTED
    physical_bytes_per_sample: float | None = None
    """Moved by devices while measuring; ``None`` where the kernel does not count them."""
    cpu_s_per_sample: float | None = None
    """CPU time of the threads that made the batches, over the whole trial."""
    decode_s_per_sample: float | None = None
    """Encoded bytes → arrays, over the whole trial."""
    predicted_samples_per_s: float | None = None
    """What was predicted before it ran; ``None``: nothing was."""
    has_step: bool = True
    """Whether anything was done with the batches, see `Diagnosis`."""
    own_interval: tuple[float, float] | None = None
    """95 % of the mean of this run, by its batches alone. ``None``: an older sweep, whose
    ``interval`` is that."""
    drift: float | None = None
    """By so much, relatively, stretches of the trial differ beyond chance (one standard deviation):
    the machine is not always as fast. ``None``: too few batches to tell."""


@dataclass(frozen=True)
class Untried:
    """A setting of a sweep's grid that was left out, as it could not change the answer."""

    url: str
    batch_size: int | None
    num_workers: int
    prefetch_factor: int | None
    samples_per_s: float
    """Predicted."""
    at_most: float
    """One next run of as long on this machine gives no more, with 95 % confidence."""
    at_least: float | None = None
    """Nor less, with 95 %. ``None``: an older sweep."""


@dataclass(frozen=True)
class RunNoise:
    """A trial that was run again when all others had run, and by how much runs of one setting
    differ here."""

    trial: int
    """Index into ``trials``: what was run again."""
    first_samples_per_s: float
    """Of that trial."""
    samples_per_s: float
    """When it was run again."""
    sd: float = 0.0
    """A run differs by so much, relatively, from others of its setting (one standard deviation): by
    this repetition, and by how far trials drift."""
    degrees: int = 0
    """Of freedom, that ``sd`` is known with."""
    half_width: float = 0.0
    """95 %: two runs of one setting differ by no more, as a logarithm."""
    apart: float | None = None
    """The best setting and the next differ by so much, as a logarithm; 3 % at least. ``None``:
    there is no other."""
    settled: bool = True
    """Whether single runs can tell these apart: ``half_width`` is at most ``apart``."""
    needed_trial_s: float | None = None
    """Seconds that trials would have to measure to tell them apart. ``None``: they are ``settled``,
    or no length would, as what runs differ by lasts."""


@dataclass(frozen=True)
class PairedRuns:
    """Two settings of one data set, run by turns, so that whatever else the machine does meanwhile
    befalls both alike."""

    trial: int
    """Index into ``trials``: the setting to use by what the trials alone say."""
    against: int
    """Index into ``trials``: the fastest of the others that may be as good."""
    samples_per_s: tuple[tuple[float, float], ...]
    """Of each pair: by the setting of ``trial``, by that of ``against``."""
    speed: float
    """The first as a multiple of the second."""
    speed_interval: tuple[float, float]
    """95 %."""
    difference: Literal["faster", "slower", "none"]
    """*none* when the interval holds 1, or the speed is within 3 % of it."""


@dataclass(frozen=True)
class SweepAdvice:
    """What a sweep says of one data set."""

    url: str
    format: str
    headline: str
    best_trial: int
    """Index into ``trials`` of the cheapest setting that feeds, else of the cheapest of those
    within 3 % of the fastest; where two were run in pairs, of the one that these bear out."""
    recommendation: Recommendation | None
    """From the first setting tried to the best."""


@dataclass(frozen=True)
class SweepResult:
    """The trials of one sweep, and what they say to set. It is saved anew after each trial.

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
    """Trials in the grid."""
    advice: tuple[SweepAdvice, ...] = ()
    notes: tuple[str, ...] = ()
    conversion: Conversion | None = None
    """What `SweepSpec.conversion` found."""
    headspace: Mapping[str, Headspace] = field(default_factory=dict)
    """URL → its best setting against data that are free; of data sets whose trials have all run."""
    paired: Mapping[str, PairedRuns] = field(default_factory=dict)
    """URL → its best setting against the next, where their order was in doubt."""
    noise: Mapping[str, RunNoise] = field(default_factory=dict)
    """URL → one of its trials, run again; of data sets with two trials or more, once all have
    run. Not where ``conversion`` has a control."""
    untried: tuple[Untried, ...] = ()
    """Of a sweep that is not exhaustive, once all its trials have run."""
    schema: Literal["pipeprof.sweep/1"] = SWEEP_SCHEMA

    @property
    def finished(self) -> bool:
        """Whether every trial has run that was to run."""
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
