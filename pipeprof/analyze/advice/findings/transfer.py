"""What it costs to hand a batch over from a worker to the training process."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import rate
from pipeprof.analyze.thresholds import LEAST_GAIN, MANY_TENSORS, TO_BLAME
from pipeprof.model import Stage

_HELD_S = 2e-3
"""To receive a few tensors takes a fraction of that; a thread of Python may keep the interpreter
for 5 ms when another wants it."""
_HEAVY = 0.2
"""Of the loop's turn."""


def _to_blame(facts: Facts) -> bool:
    return facts.starved and facts.workers > 0 and facts.blamed(str(Stage.TRANSFER)) >= TO_BLAME


def receiving_bound(facts: Facts) -> bool:
    """Whether main, on receiving batches, is a limit that no worker can raise."""
    return _to_blame(facts) and facts.received_s >= _HEAVY * facts.cycle_s


def inline_is_faster(facts: Facts) -> bool:
    """Whether a batch is sooner made by main than received from a worker."""
    costlier = facts.made_s < facts.stage_s(Stage.TRANSFER) and not interpreter_held(facts)
    return _to_blame(facts) and costlier and rate(facts, 0) >= LEAST_GAIN * facts.rate


def interpreter_held(facts: Facts) -> bool:
    """Whether main is slow to receive even few tensors, with something else running in it."""
    slow = facts.tensors < MANY_TENSORS and facts.stage_s(Stage.UNPICKLE) >= _HELD_S
    return _to_blame(facts) and slow and facts.main_cores >= 0.5


@case("many-small-tensors")
def many_tensors(facts: Facts) -> Figures | None:
    """A batch is torn into many small tensors.

    Seen by the time in which main receives a batch, a fifth of its loop or more, and by the number
    of tensors. torch passes each by a file of its own. Cured by packing them into one, or by no
    workers at all; not by more.
    """
    if not receiving_bound(facts) or not facts.tensors >= MANY_TENSORS:
        return None
    return {
        "share": facts.received_s / facts.cycle_s,
        "each_bytes": facts.batch_bytes / facts.tensors,
        "inline": inline_is_faster(facts),
    }


@case("pickled-batches")
def no_tensors(facts: Facts) -> Figures | None:
    """A batch without tensors is pickled whole.

    Seen by the time in which main unpickles it, a fifth of its loop or more. Cured by tensors,
    which travel by shared memory.
    """
    if not receiving_bound(facts) or not facts.tensors < 1:
        return None
    return {"share": facts.received_s / facts.cycle_s}


@case("in-memory-data")
def in_memory_data(facts: Facts) -> Figures | None:
    """To make a batch is cheaper than to send it.

    Seen by making against the way to main. Cured by `num_workers=0`.
    """
    if not facts.tensors < MANY_TENSORS or not inline_is_faster(facts):
        return None
    return {"transfer_s": facts.stage_s(Stage.TRANSFER)}
