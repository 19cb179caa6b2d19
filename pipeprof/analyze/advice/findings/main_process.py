"""Findings about work of the training process, which takes one batch at a time."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.findings.transfer import interpreter_is_blocked
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.profile.stall_attribution import MAIN, SAMPLER
from pipeprof.analyze.thresholds import TO_BLAME
from pipeprof.model import Stage

_LEAST_CYCLE_SHARE = 0.05
"""Share of a loop cycle below which a cost of the training process is not reported."""
_MOSTLY_LATE = 0.4
"""Share of the stall. Any busy machine wakes the training process a little late."""
_SEVERAL_TENSORS = 8
"""Tensors in a batch from which on packing them saves time in pinning."""


_DRAWN_AT_ONCE = {
    f"torch.utils.data.{name}"
    for name in (
        "sampler.SequentialSampler",
        "sampler.RandomSampler",
        "sampler.WeightedRandomSampler",
        "distributed.DistributedSampler",
    )
}
"""Samplers that draw an epoch's indices at once already."""


def sampler_bound(facts: Facts) -> bool:
    """Return whether picking indices causes a large part of the stall, and could cost less."""
    can_cost_less = facts.config.sampler not in _DRAWN_AT_ONCE
    return facts.starved and can_cost_less and facts.blamed(SAMPLER) >= TO_BLAME


@case("slow-sampler")
def sampler(facts: Facts) -> Figures | None:
    """Picking the indices of a batch is slow.

    Reported when the sampler, which runs in the training process, causes 25 % or more of the stall.
    Not reported for samplers of torch that draw an epoch's indices at once already.

    Fix: draw an epoch's indices at once. The number of workers makes no difference.
    """
    if not sampler_bound(facts):
        return None
    return {"share": facts.blamed(SAMPLER), "each_s": facts.blamed_s(SAMPLER)}


@case("main-process-bound")
def busy_main(facts: Facts) -> Figures | None:
    """A batch has arrived, but the training process is slow to take it.

    Reported when 40 % or more of the stall passes after a batch has arrived. Also reported when the
    training process computes and takes 2 ms or more to receive a few tensors: another thread then
    blocks the interpreter.

    Fix: find that thread.
    """
    share, each_s = facts.blamed(MAIN), facts.blamed_s(MAIN)
    if facts.starved and share >= _MOSTLY_LATE and each_s >= _LEAST_CYCLE_SHARE * facts.cycle_s:
        return {"share": share, "each_s": each_s, "unpickle_s": None}
    if interpreter_is_blocked(facts):
        return {"share": None, "each_s": None, "unpickle_s": facts.stage_s(Stage.UNPICKLE)}
    return None


def pinning_bound(facts: Facts) -> bool:
    """Return whether pinning causes a large part of the stall."""
    pins = facts.stage_s(Stage.PIN) > 0
    return facts.starved and pins and facts.blamed(str(Stage.PIN)) >= TO_BLAME


@case("pin-bound")
def pinning(facts: Facts) -> Figures | None:
    """Copying batches to page-locked memory costs more than it saves.

    Reported when 25 % or more of the stall is waiting for the pin thread.

    Fix: use fewer tensors per batch, or `pin_memory=False`.
    """
    if not pinning_bound(facts):
        return None
    copied_s = facts.stage_s(Stage.H2D)
    return {
        "share": facts.blamed(str(Stage.PIN)),
        "pin_s": facts.stage_s(Stage.PIN),
        "copied_s": copied_s if copied_s > 0 else None,
        "several": facts.tensors > 1,
        "many": facts.tensors >= _SEVERAL_TENSORS,
    }


def copies_matter(facts: Facts) -> bool:
    """Return whether copies to the device take a considerable part of the loop."""
    return facts.stage_s(Stage.H2D) >= _LEAST_CYCLE_SHARE * facts.cycle_s


@case("pageable-copies")
def pageable_copies(facts: Facts) -> Figures | None:
    """Batches are copied to the device from memory that is not page-locked.

    Reported when `pipeprof.to_device` or the training step makes such copies, and copies take 5 %
    or more of the loop.

    Fix: set `pin_memory=True`. A batch of a type that torch does not know needs a method
    `pin_memory()`.
    """
    if not facts.main.pageable_copies or not copies_matter(facts):
        return None
    copied_s = facts.stage_s(Stage.H2D)
    return {"copied_s": copied_s, "share": copied_s / facts.cycle_s}


@case("blocking-copies")
def blocking_copies(facts: Facts) -> Figures | None:
    """The host waits for each copy to the device, and for all work queued before it.

    Reported when `pipeprof.to_device` or the training step makes such copies, and copies take 5 %
    or more of the loop.

    Fix: copy with `non_blocking=True` from pinned memory.
    """
    if not facts.main.blocking_copies or not copies_matter(facts):
        return None
    return {"copied_s": facts.stage_s(Stage.H2D)}
