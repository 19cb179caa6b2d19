"""Findings about the transfer of batches from workers to the training process."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import batch_memory_s, rate
from pipeprof.analyze.thresholds import LEAST_GAIN, MANY_TENSORS, MINOR_SHARE, TO_BLAME
from pipeprof.model import Stage

_BLOCKED_UNPICKLE_S = 2e-3
"""Seconds to receive a few tensors. It should take a fraction of that, but a Python thread may keep
the interpreter for 5 ms when another needs it."""
_LEAST_RECEIVING_SHARE = 0.2
"""Share of a loop cycle from which on receiving batches limits the loop."""


def _transfer_is_slow(facts: Facts) -> bool:
    return facts.starved and facts.workers > 0 and facts.blamed(str(Stage.TRANSFER)) >= TO_BLAME


def receiving_bound(facts: Facts) -> bool:
    """Return whether receiving batches limits the training process, however many the workers."""
    heavy = facts.received_s >= _LEAST_RECEIVING_SHARE * facts.cycle_s
    return _transfer_is_slow(facts) and heavy


def inline_is_faster(facts: Facts) -> bool:
    """Return whether main builds a batch faster than it receives one from a worker."""
    cheaper = facts.made_s < facts.stage_s(Stage.TRANSFER) and not interpreter_is_blocked(facts)
    return _transfer_is_slow(facts) and cheaper and rate(facts, 0) >= LEAST_GAIN * facts.rate


def interpreter_is_blocked(facts: Facts) -> bool:
    """Return whether main is slow to receive even few tensors because another thread runs."""
    slow = facts.tensors < MANY_TENSORS and facts.stage_s(Stage.UNPICKLE) >= _BLOCKED_UNPICKLE_S
    return _transfer_is_slow(facts) and slow and facts.main_cores >= 0.5


@case("many-small-tensors")
def many_tensors(facts: Facts) -> Figures | None:
    """A batch consists of many small tensors, each of which torch sends in a file of its own.

    Reported when a batch has 16 tensors or more, and the training process spends 20 % or more of
    its loop on receiving batches.

    Fix: pack the tensors into one, or use no workers. More workers do not help.
    """
    if not receiving_bound(facts) or not facts.tensors >= MANY_TENSORS:
        return None
    return {
        "share": facts.received_s / facts.cycle_s,
        "each_bytes": facts.batch_bytes / facts.tensors,
        "inline": inline_is_faster(facts),
    }


@case("large-batches")
def large_batches(facts: Facts) -> Figures | None:
    """A batch has so many bytes that the kernel takes long to provide and clear its shared memory.

    Reported when new memory takes 10 % or more of a worker's time for a batch. Also reported when
    giving it back takes 10 % or more of the training process's loop. Both are estimated by a test
    of new memory after the run.

    Fix: send fewer bytes, such as images as uint8, and convert them on the device.
    """
    new_s, back_s = batch_memory_s(facts)
    if not facts.workers or not new_s * facts.made_s * facts.cycle_s > 0:
        return None
    in_worker, in_main = min(1.0, new_s / facts.made_s), back_s / facts.cycle_s
    if not (facts.starved and in_worker >= MINOR_SHARE) and not in_main >= MINOR_SHARE:
        return None
    return {
        "size": facts.summary.gauges["batch_bytes"].mean,
        "new_s": new_s,
        "in_worker": in_worker,
        "back_s": back_s,
        "in_main": in_main,
    }


@case("pickled-batches")
def no_tensors(facts: Facts) -> Figures | None:
    """A batch without tensors is pickled as a whole.

    Reported when the training process spends 20 % or more of its loop on unpickling batches.

    Fix: return tensors, which travel by shared memory.
    """
    if not receiving_bound(facts) or not facts.tensors < 1:
        return None
    return {"share": facts.received_s / facts.cycle_s}


@case("in-memory-data")
def in_memory_data(facts: Facts) -> Figures | None:
    """Building a batch costs less than sending it.

    Reported when the transfer to the training process takes longer than building the batch, and
    causes 25 % or more of the stall.

    Fix: set `num_workers=0`.
    """
    if not facts.tensors < MANY_TENSORS or not inline_is_faster(facts):
        return None
    return {"transfer_s": facts.stage_s(Stage.TRANSFER)}
