"""What the training process does itself, and cannot do for several batches at once."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.findings.transfer import interpreter_held
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.profile.stall_attribution import MAIN, SAMPLER
from pipeprof.analyze.thresholds import TO_BLAME
from pipeprof.model import Stage

_MUCH = 0.05
"""Of the loop's turn."""
_MOSTLY_LATE = 0.4
"""Of the stall: any busy machine wakes the training process a little late."""
_SEVERAL_TENSORS = 8
"""In a batch, from which on to pack them saves time in pinning."""


def sampler_bound(facts: Facts) -> bool:
    """Whether picking indices is a good part of what the accelerator waits for."""
    return facts.starved and facts.blamed(SAMPLER) >= TO_BLAME


@case("slow-sampler")
def sampler(facts: Facts) -> Figures | None:
    """Picking the indices of a batch is slow.

    Seen by the stall: a quarter or more of it passed in the sampler, which runs in the training
    process. Cured by drawing an epoch's indices at once; no number of workers changes it.
    """
    if not sampler_bound(facts):
        return None
    return {"share": facts.blamed(SAMPLER), "each_s": facts.blamed_s(SAMPLER)}


@case("main-process-bound")
def busy_main(facts: Facts) -> Figures | None:
    """A batch is there, and the training process does not take it.

    Seen by stall after the batch had arrived, or by main taking 2 ms or more to receive a few
    tensors while it computes: another thread holds the interpreter. Cured by looking for that
    thread.
    """
    share, each_s = facts.blamed(MAIN), facts.blamed_s(MAIN)
    if facts.starved and share >= _MOSTLY_LATE and each_s >= _MUCH * facts.cycle_s:
        return {"share": share, "each_s": each_s, "unpickle_s": None}
    if interpreter_held(facts):
        return {"share": None, "each_s": None, "unpickle_s": facts.stage_s(Stage.UNPICKLE)}
    return None


def pinning_bound(facts: Facts) -> bool:
    """Whether pinning is a good part of what the accelerator waits for."""
    pins = facts.stage_s(Stage.PIN) > 0
    return facts.starved and pins and facts.blamed(str(Stage.PIN)) >= TO_BLAME


@case("pin-bound")
def pinning(facts: Facts) -> Figures | None:
    """Copying batches to page-locked memory is slower than it is worth.

    Seen by the stall: a quarter or more of it is waiting for the pin thread. Cured by fewer tensors
    a batch, or `pin_memory=False`.
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
    """Whether copies to the device take a good part of the loop."""
    return facts.stage_s(Stage.H2D) >= _MUCH * facts.cycle_s


@case("pageable-copies")
def pageable_copies(facts: Facts) -> Figures | None:
    """Copies to the device from memory that is not page-locked.

    Seen by the copies of `pipeprof.to_device` and of the training step. Cured by `pin_memory=True`,
    or a method `pin_memory()` where torch does not know the batch's type.
    """
    if not facts.main.pageable_copies or not copies_matter(facts):
        return None
    copied_s = facts.stage_s(Stage.H2D)
    return {"copied_s": copied_s, "share": copied_s / facts.cycle_s}


@case("blocking-copies")
def blocking_copies(facts: Facts) -> Figures | None:
    """The host waits for each copy, and for all work queued before it.

    Seen as above. Cured by `non_blocking=True` on pinned memory.
    """
    if not facts.main.blocking_copies or not copies_matter(facts):
        return None
    return {"copied_s": facts.stage_s(Stage.H2D)}
