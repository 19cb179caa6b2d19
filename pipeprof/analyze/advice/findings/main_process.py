"""What the training process does itself, and cannot do for several batches at once."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.findings.transfer import interpreter_held
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.profile.stall_attribution import MAIN, SAMPLER
from pipeprof.model import Stage
from pipeprof.units import counted, format_duration, percent

_TO_BLAME = 0.25
"""Of the stall."""
_MUCH = 0.05
"""Of the loop's turn."""


def sampler_bound(facts: Facts) -> bool:
    return facts.starved and facts.blamed(SAMPLER) >= _TO_BLAME


@case("slow-sampler", "The sampler holds up the training process")
def sampler(facts: Facts) -> Seen | None:
    """Picking the indices of a batch is slow.

    Seen by the stall: a quarter or more of it passed in the sampler, which runs in the training
    process. Cured by drawing an epoch's indices at once; no number of workers changes it.
    """
    if not sampler_bound(facts):
        return None
    each_s = facts.per_batch(facts.summary.blame[SAMPLER])
    return Seen(
        f"{percent(facts.blamed(SAMPLER))} of the stall was picking indices: "
        f"{format_duration(each_s)} a batch, in the training process.",
        "Draw the indices of an epoch at once (torch.randperm(n).tolist()) instead of one by one, "
        "or pass a batch_sampler that yields whole lists. num_workers="
        f"{facts.workers} makes no difference to it.",
    )


def pinning_bound(facts: Facts) -> bool:
    seen = facts.stage_s(Stage.PIN) > 0
    return facts.starved and seen and facts.blamed(str(Stage.PIN)) >= _TO_BLAME


@case("pin-bound", "Pinning holds up the training process")
def pinning(facts: Facts) -> Seen | None:
    """Copying batches to page-locked memory is slower than it is worth.

    Seen by the stall: a quarter or more of it is waiting for the pin thread. Cured by fewer tensors
    a batch, or `pin_memory=False`.
    """
    if not pinning_bound(facts):
        return None
    tensors = facts.tensors
    what = f" of {counted(tensors, 'tensor')}" if tensors > 1 else ""
    fewer = "Pack the batch into fewer tensors: each is pinned by itself. " if tensors >= 8 else ""
    copied = facts.stage_s(Stage.H2D)
    beside = f" The copy to the device takes {format_duration(copied)}." if copied > 0 else ""
    return Seen(
        f"{percent(facts.blamed(str(Stage.PIN)))} of the stall was pinning: "
        f"{format_duration(facts.stage_s(Stage.PIN))} a batch{what}, in one thread.{beside}",
        f"{fewer}Or try pin_memory=False: it is on, and costs more here than the faster copy can "
        "give back.",
    )


@case("main-process-bound", "The training process is slow to take its batches")
def busy_main(facts: Facts) -> Seen | None:
    """A batch is there, and the training process does not take it.

    Seen by stall after the batch had arrived, or by main taking 2 ms or more to receive a few
    tensors while it computes: another thread holds the interpreter. Cured by looking for that
    thread.
    """
    each_s = facts.per_batch(facts.summary.blame[MAIN])
    # any busy machine wakes main a little late
    late = facts.starved and facts.blamed(MAIN) >= 0.4 and each_s >= _MUCH * facts.cycle_s
    if late:
        seen = (
            f"{percent(facts.blamed(MAIN))} of the stall passed after the batch had arrived: "
            f"{format_duration(each_s)} a batch"
        )
    elif interpreter_held(facts):
        seen = (
            f"It took {format_duration(facts.stage_s(Stage.UNPICKLE))} to receive a batch of "
            f"{counted(facts.tensors, 'tensor')}, which takes well below 1 ms in a process that "
            "does nothing else"
        )
    else:
        return None
    return Seen(
        f"{seen}. It used {facts.main_cores:.1f} of {counted(facts.environment.cores, 'core')}.",
        "Look for Python threads beside the training loop, which hold the interpreter, and for "
        f"too few free cores. num_workers={facts.workers} makes no difference to it.",
    )


def copies_matter(facts: Facts) -> bool:
    return facts.stage_s(Stage.H2D) >= _MUCH * facts.cycle_s


@case("pageable-copies", "Copies to the device from pageable memory")
def pageable_copies(facts: Facts) -> Seen | None:
    """Copies to the device from memory that is not page-locked.

    Seen by the copies of `pipeprof.to_device` and of the training step. Cured by `pin_memory=True`,
    or a method `pin_memory()` where torch does not know the batch's type.
    """
    pageable = facts.main.pageable_copies
    if not pageable or not copies_matter(facts):
        return None
    fix = "Set pin_memory=True; it is off."
    if facts.config.pin_memory:
        fix = ("pin_memory is on already: torch does not know this kind of batch. Give it a method "
               "pin_memory(), or build it of tensors, lists and mappings.")  # fmt: skip
    return Seen(
        f"{counted(pageable, 'copy', 'copies')} in "
        f"{counted(facts.summary.total, 'batch')} were from memory that was not pinned; they take "
        f"{format_duration(facts.stage_s(Stage.H2D))} a batch, "
        f"{percent(facts.stage_s(Stage.H2D) / facts.cycle_s)} of the loop.",
        fix,
    )


@case("blocking-copies", "The training process waits for its copies")
def blocking_copies(facts: Facts) -> Seen | None:
    """The host waits for each copy, and for all work queued before it.

    Seen as above. Cured by `non_blocking=True` on pinned memory.
    """
    blocking = facts.main.blocking_copies
    if not blocking or not copies_matter(facts):
        return None
    pinned = facts.config.pin_memory
    return Seen(
        f"{counted(blocking, 'copy', 'copies')} in "
        f"{counted(facts.summary.total, 'batch')} were blocking; they take "
        f"{format_duration(facts.stage_s(Stage.H2D))} a batch.",
        "Use .to(device, non_blocking=True)"
        + ("." if pinned else ", with pin_memory=True: it is off, and copies from pageable memory "
           "block all the same."),
    )  # fmt: skip
