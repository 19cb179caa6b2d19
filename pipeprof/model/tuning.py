"""What tuning a loader tried, what it brought, and what stays."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from pipeprof.model.reading import ReadOptions

TuningState = Literal["searching", "fed", "best", "budget", "failed", "off"]
"""*fed*: the accelerator is fed. *best*: nothing else is expected to be faster. *budget*: the time
that trials may cost is spent. *failed*: the search ended early, and a note says why. *off*: this
loader cannot be tuned."""


@dataclass(frozen=True)
class TunedSetting:
    """The settings of a loader that tuning may change."""

    num_workers: int
    prefetch_factor: int | None
    """Batches that each worker fetches ahead; ``None`` without workers."""
    pin_memory: bool = False
    in_order: bool = True
    """Whether batches come in the order of the sampler."""
    threads: int | None = None
    """Native threads that libraries start in each worker; ``None``: as many as they choose."""
    read: ReadOptions | None = None
    """How bytes are fetched for a data set of `pipeprof.open_dataset`; ``None`` for others."""

    @property
    def outstanding(self) -> int:
        """Batches that all its workers fetch ahead."""
        return self.num_workers * (self.prefetch_factor or 0)

    def __str__(self) -> str:
        """As arguments of ``DataLoader``, those left out that have their default."""
        arguments = [f"num_workers={self.num_workers}"]
        if self.num_workers:
            arguments.append(f"prefetch_factor={self.prefetch_factor}")
        if self.pin_memory:
            arguments.append("pin_memory=True")
        if not self.in_order:
            arguments.append("in_order=False")
        if self.threads:
            arguments.append(f"{self.threads} thread{'s' * (self.threads > 1)} a worker")
        if self.read not in (None, ReadOptions()):
            arguments.append(f"read={self._read_options}")
        return ", ".join(arguments)

    @property
    def code(self) -> str:
        """The arguments of ``DataLoader`` to paste, and what they need."""
        plain = replace(self, threads=None, read=None)
        arguments = f"{plain}, persistent_workers=True" if self.num_workers else f"{plain}"
        changed = self.read not in (None, ReadOptions())
        before = f"open_dataset(…, read={self._read_options})\n" if changed else ""
        if self.threads:
            arguments += ", worker_init_fn=limit_threads"
            before += (
                "def limit_threads(worker):\n"
                "    # of these, what the data set uses\n"
                f"    threadpoolctl.threadpool_limits({self.threads})\n"
                f"    cv2.setNumThreads({self.threads})\n"
                f"    pyarrow.set_cpu_count({self.threads})\n\n"
            )
        return f"{before}DataLoader(…, {arguments})"

    @property
    def _read_options(self) -> str:
        """Those that differ from the default."""
        names = [each.name for each in fields(ReadOptions)]
        default = ReadOptions()
        changed = [n for n in names if getattr(self.read, n) != getattr(default, n)]
        return f"ReadOptions({', '.join(f'{n}={getattr(self.read, n)}' for n in changed)})"


@dataclass(frozen=True)
class TriedSetting:
    """A setting that was tried, in alternating stretches with the one that was in use."""

    setting: TunedSetting
    against: TunedSetting
    ratio: float | None = None
    """Batches/s as a multiple of the other's; ``None`` if the setting failed."""
    interval: tuple[float, float] | None = None
    """95 % of ``ratio``."""
    predicted: float | None = None
    """``ratio`` as predicted before; ``None`` if nothing was."""
    pairs: int = 0
    """Stretches of each that were compared."""
    kept: bool = False
    error: str | None = None
    """Why the setting failed."""
    with_others: float | None = None
    """The ratio of the loop's rates, where the loop waited only for other tuned loaders. Then
    ``ratio`` counts no waits for those, as their searches shorten these. Otherwise ``None``."""


@dataclass(frozen=True)
class Fed:
    """How well a setting feeds the accelerator."""

    batches_per_s: float
    starved_fraction: float
    """0 to 1 of the time, in which the accelerator waited for a batch, or the training loop where
    no accelerator is observed."""
    others_fraction: float = 0.0
    """0 to 1 of the time, in which it waited for batches of other tuned loaders."""


@dataclass(frozen=True)
class Tuning:
    """What `pipeprof.tune` did to a loader so far.

    Examples:
        >>> print(loader.tuning())
        The accelerator is fed.
        before  num_workers=0: 6.1 batches/s, waiting 50.7 % of the time
          ...
    """

    state: TuningState
    own: TunedSetting
    """The user's."""
    chosen: TunedSetting
    first: TunedSetting
    """Measured first: the user's, or what ``fixed`` or an earlier run made of it."""
    before: Fed | None = None
    """With the ``first`` setting, at the start; ``None`` until it is measured."""
    after: Fed | None = None
    """With the chosen one, measured last."""
    tried: tuple[TriedSetting, ...] = ()
    lost_s: float = 0.0
    """Seconds that the search cost: what the batches of trials and of switching took longer."""
    notes: tuple[str, ...] = ()
    """What was left alone, and why."""

    @property
    def code(self) -> str:
        """What to paste, so that the next run starts with the chosen setting."""
        return self.chosen.code

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
