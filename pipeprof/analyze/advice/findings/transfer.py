"""What it costs to hand a batch over from a worker to the training process."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.roofline_estimate import rate
from pipeprof.analyze.thresholds import LEAST_GAIN, MANY_TENSORS
from pipeprof.model import Stage
from pipeprof.units import counted, format_duration, percent

_TO_BLAME = 0.25
"""Of the stall."""
_HELD_S = 2e-3
"""To receive a few tensors takes a fraction of that; a thread of Python may keep the interpreter
for 5 ms when another wants it."""
_HEAVY = 0.2
"""Of the loop's turn."""


def _to_blame(facts: Facts) -> bool:
    return (
        facts.starved and facts.workers > 0 and facts.blamed(str(Stage.TRANSFER)) >= _TO_BLAME
    )  # fmt: skip


def receiving_bound(facts: Facts) -> bool:
    """Whether main, on receiving batches, is a limit that no worker can raise."""
    return _to_blame(facts) and facts.received_s >= _HEAVY * facts.cycle_s


def inline_is_faster(facts: Facts) -> bool:
    """Whether a batch is sooner made by main than received from a worker."""
    dearer = facts.made_s < facts.stage_s(Stage.TRANSFER) and not interpreter_held(facts)
    return _to_blame(facts) and dearer and rate(facts, 0) >= LEAST_GAIN * facts.rate


def interpreter_held(facts: Facts) -> bool:
    """Whether main is slow to receive even few tensors, with something else running in it."""
    slow = facts.tensors < MANY_TENSORS and facts.stage_s(Stage.UNPICKLE) >= _HELD_S
    return _to_blame(facts) and slow and facts.main_cores >= 0.5


@case("many-small-tensors", "Batches of many small tensors")
def many_tensors(facts: Facts) -> Seen | None:
    """A batch is torn into many small tensors.

    Seen by the time in which main receives a batch, a fifth of its loop or more, and by the number
    of tensors. torch passes each by a file of its own. Cured by packing them into one, or by no
    workers at all; not by more.
    """
    tensors = facts.tensors
    if not receiving_bound(facts) or not tensors >= MANY_TENSORS:
        return None
    inline = (
        f" num_workers=0 instead of {facts.workers} avoids the way altogether."
        if inline_is_faster(facts) else ""
    )  # fmt: skip
    each = facts.batch_bytes / tensors
    made = f" To make the batch takes {format_duration(facts.work_s)}." * (facts.work_s >= 0)
    return Seen(
        f"A batch is {counted(tensors, 'tensor')}{f' of {each:,.0f} bytes' * (each >= 0)}; the "
        f"training process spends {format_duration(facts.received_s)} on receiving them, "
        f"{percent(facts.received_s / facts.cycle_s)} of its loop.{made}",
        f"Pack them into one tensor in collate_fn, and split it after.{inline} More workers than "
        f"{facts.workers} do not help: one process receives.",
    )


@case("pickled-batches", "Batches are pickled instead of shared")
def no_tensors(facts: Facts) -> Seen | None:
    """A batch without tensors is pickled whole.

    Seen by the time in which main unpickles it, a fifth of its loop or more. Cured by tensors,
    which travel by shared memory.
    """
    if not receiving_bound(facts) or not facts.tensors < 1:
        return None
    return Seen(
        "A batch holds no tensors, so all of it goes through a pipe: "
        f"{format_duration(facts.received_s)} to unpickle it, "
        f"{percent(facts.received_s / facts.cycle_s)} of the loop.",
        "Return tensors from collate_fn: they travel by shared memory. "
        f"More workers than {facts.workers} do not help: one process unpickles.",
    )


@case("in-memory-data", "Handing a batch over costs more than making it")
def in_memory_data(facts: Facts) -> Seen | None:
    """To make a batch is cheaper than to send it.

    Seen by making against the way to main. Cured by `num_workers=0`.
    """
    if not facts.tensors < MANY_TENSORS or not inline_is_faster(facts):
        return None
    return Seen(
        f"To make a batch takes {format_duration(facts.made_s)}; its way to the training process "
        f"then takes {format_duration(facts.stage_s(Stage.TRANSFER))}.",
        f"Set num_workers=0 instead of {facts.workers}: the data is at hand, and needs no workers.",
    )
