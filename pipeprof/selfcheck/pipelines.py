"""Define the pipelines of the check. To add one, add an entry to the tables below."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pipeprof.model import Stage, Verdict
from pipeprof.selfcheck.acts import Act, computes, opens, reads, sleeps
from pipeprof.selfcheck.clocked import ClockedCollate

_FILE, _FILE_BYTES = "known.bin", 8_000_000
_STAGES = sleeps(0.002, Stage.READ), sleeps(0.016, Stage.DECODE), sleeps(0.0005, Stage.TRANSFORM)
_ALTERNATING = sleeps(0.0005, Stage.READ), sleeps(0.0015, Stage.DECODE)

_ALWAYS = ("fetch", "collate", "wait", "step")
_NAMED = ("read", "decode", "transform", *_ALWAYS)
_READ_AND_DECODE = ("read", "decode", *_ALWAYS)
TRANSFER = ("transfer", "serialise", "pipe", "unpickle")
"""The transfer to the main process, and its parts."""
_IN_DECODE = ("awaited in decode", "awaited in transform", "awaited in collate")

_NO_TENSORS = ClockedCollate(tensors=0)
"""For loaders that must be on time: on a busy machine, passing a tensor between two processes takes
some milliseconds."""


@dataclass(frozen=True)
class Truth:
    """What pipeprof must report for a pipeline on any machine."""

    verdict: Verdict
    culprits: tuple[str, ...]
    """Allowed bottlenecks: first the planned one, then others that are possible on a busy
    machine."""
    figures: tuple[str, ...]
    """Stages and resources to compare, with the names of
    `pipeprof.selfcheck.truth.true_seconds`."""
    finding: str | None = None
    """Code of a finding that must be reported."""
    more_workers: bool = True
    """``False``: more workers would not help, and must not be recommended."""
    counted: tuple[str, ...] = ()
    """Counts of the reads that must be exact: ``bytes``, ``requests``."""
    awaited_in: tuple[str, ...] = ()
    """Stages in which most of the awaited batches may be; empty: those in ``culprits``."""

    @property
    def places(self) -> tuple[str, ...]:
        return self.awaited_in or self.culprits


@dataclass(frozen=True)
class Pipeline:
    """A real DataLoader over a data set that performs ``acts`` for each sample."""

    name: str
    says: str
    acts: tuple[Act, ...]
    truth: Truth
    batches: int
    step_s: float = 0.001
    workers: int = 1
    start_method: str = "fork"
    batch_size: int = 1
    collate: ClockedCollate = field(default_factory=ClockedCollate)
    slow_every: int = 0
    slow_by: float = 1.0
    cores: int | None = None
    """Maximum number of cores to use; ``None``: all."""
    pin_memory: bool = False
    quick: bool = True
    """Whether a quick check includes it."""


_NAMED_STAGES = (
    Pipeline(
        "stages", "sleeps in named stages, workers forked",
        _STAGES, Truth("starved", ("decode",), (*_NAMED, *TRANSFER, *_IN_DECODE)),
        batches=160, workers=2, collate=ClockedCollate(0.0005),
    ),
    Pipeline(
        "spawn", "sleeps in alternating named stages, workers spawned",
        _ALTERNATING, Truth("starved", ("decode",), _READ_AND_DECODE),
        batches=80, workers=2, start_method="spawn", batch_size=8,
    ),
    Pipeline(
        "forkserver", "the same, workers from a fork server",
        _ALTERNATING, Truth("starved", ("decode",), _READ_AND_DECODE),
        batches=80, workers=2, start_method="forkserver", batch_size=8, quick=False,
    ),
    Pipeline(
        "inline", "sleeps in named stages, no workers",
        _STAGES, Truth("starved", ("decode",), (*_NAMED, "awaited in read", *_IN_DECODE)),
        batches=60, workers=0, step_s=0.003, collate=ClockedCollate(0.0005),
    ),
)  # fmt: skip
_BLACK_BOXES = (
    Pipeline(
        "burn", "computes in a black box",
        (computes(0.010),),
        Truth("starved", ("fetch", "worker-cpu"),
              (*_ALWAYS, "cpu", "off-core", "awaited in fetch")),
        batches=150,
    ),
    Pipeline(
        "python", "computes in pure Python: a finished batch waits for the interpreter",
        (computes(0.008, locked=True),),  # well above a hand-over, which may take 4 ms
        Truth("starved", ("fetch", "worker-cpu"), (*_ALWAYS, *TRANSFER, "cpu"),
              awaited_in=(*TRANSFER, "fetch")),
        batches=150,
    ),
    Pipeline(
        "python-collate", "the same in collate",
        (), Truth("starved", ("collate", "worker-cpu"), (*_ALWAYS, *TRANSFER, "cpu"),
                  awaited_in=(*TRANSFER, "collate")),
        batches=120, collate=ClockedCollate(computes_s=0.008),
    ),
    Pipeline(
        "python-crowd", "pure Python in three times as many workers as cores",
        (computes(0.006, locked=True),),
        Truth("starved", ("worker-cpu", "fetch"), (*_ALWAYS, "cpu"),
              more_workers=False, awaited_in=(*TRANSFER, "fetch")),
        batches=400, workers=6, cores=2, quick=False,
    ),
    Pipeline(
        "sleep", "sleeps in a black box",
        (sleeps(0.020),),
        Truth("starved", ("fetch",),
              (*_ALWAYS, "cpu", "off-core", "blocked", "awaited in fetch")),
        batches=100,
    ),
)  # fmt: skip
_CIRCUMSTANCES = (
    Pipeline(
        "contention", "computes in twice as many workers as cores",
        (computes(0.006),),
        Truth("starved", ("worker-cpu", "fetch"), (*_ALWAYS, "cpu", "off-core", "run-queue"),
              "cpu-oversubscribed", more_workers=False, awaited_in=("fetch", *TRANSFER)),
        batches=400, workers=4, cores=2,
    ),
    Pipeline(
        "tensors", "almost no work, but 100 tiny tensors per batch",
        (), Truth("starved", TRANSFER, (*_ALWAYS, *TRANSFER), more_workers=False),
        batches=60, step_s=0.002, collate=ClockedCollate(tensors=100),
    ),
    Pipeline(
        "slow-batch", "one batch in ten takes fifteen times as long",
        (sleeps(0.004),),
        Truth("starved", ("fetch",), (*_ALWAYS, "reorder", "awaited in fetch")),
        batches=200, workers=2, step_s=0.006, slow_every=10, slow_by=15,
    ),
    Pipeline(
        "fed", "faster than the training step, with two workers",
        (sleeps(0.050),), Truth("fed", ("accelerator",), (*_ALWAYS, "ready")),
        batches=60, workers=2, step_s=0.040, collate=_NO_TENSORS,
    ),
    Pipeline(
        "slow-step", "much faster than the training step",
        (sleeps(0.001),), Truth("fed", ("accelerator",), (*_ALWAYS, "ready")),
        batches=60, step_s=0.040, collate=_NO_TENSORS,
    ),
    Pipeline(
        "pin", "pins what it loads",
        (sleeps(0.004),), Truth("starved", ("fetch",), (*_ALWAYS, "pin")),
        batches=150, collate=ClockedCollate(tensors=4, values=1_000_000), pin_memory=True,
    ),
)  # fmt: skip


def pipelines(folder: Path) -> tuple[Pipeline, ...]:
    """Return all pipelines. Two of them read a file in ``folder``, which `write_files` writes."""
    file = folder / _FILE
    reading = (
        Pipeline(
            "reads", "reads a file of known size through pipeprof's storage",
            (reads(file, _FILE_BYTES, times=4),),
            Truth("starved", ("read",), ("read", *_ALWAYS, "awaited in read"),
                  counted=("bytes", "requests")),
            batches=80, step_s=0.0005,
        ),
        Pipeline(
            "open", "reads a file of known size by open(), in a black box",
            (opens(file, times=4),),
            Truth("starved", ("read",), ("read", *_ALWAYS), counted=("bytes",)),
            batches=80, step_s=0.0005,
        ),
    )  # fmt: skip
    return (*_NAMED_STAGES, *_BLACK_BOXES, *reading, *_CIRCUMSTANCES)


def write_files(folder: Path) -> None:
    """Write the file that some pipelines read."""
    (folder / _FILE).write_bytes(bytes(_FILE_BYTES))
