"""Texts of a profile about its ceilings, and about parts that name different causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.model import Ceiling


def ceilings(limits: Mapping[str, tuple[float, Figures]], run: object) -> dict[str, Ceiling]:
    """Return the ceiling of each resource with its formula, in the given order."""
    return {
        name: Ceiling(samples_per_s, fill(_FORMULAS[name], figures, run))
        for name, (samples_per_s, figures) in limits.items()
    }


def explanations(disagreements: Iterable[tuple[str, Figures]]) -> tuple[str, ...]:
    """Explain in a sentence or two each why parts of a report disagree."""
    return tuple(fill(_EXPLANATIONS[code], figures) for code, figures in disagreements)


_EACH: Final = "{samples:,.0f} samples / {seconds:duration} "
_RECEIVING: Final = "«, with {receive_s:duration} to receive it»"
_FORMULAS: Final = {
    "workers": "{builders} × {samples:,.0f} samples / {made_s:duration} to build a batch",
    "worker-cpu": "{cores_left:n core} × {samples:,.0f} samples / {cpu_s:duration} of CPU a batch"
    "«{shared:if}; {cores:n core} shared by {environment.ranks:n rank}»"
    "«{main_counts:if}; {main_cores:.1f} busy with the training process»",
    "transfer": f"{_EACH}to receive a batch",
    "pin": f"{_EACH}in the thread that pins{_RECEIVING}",
    "main": f"{_EACH}of the training process, to pick indices{_RECEIVING}",
    "h2d": f"{_EACH}to copy a batch to the device",
    "pipeline": "{rate:count} samples/s / {busy:percent} of its time that {stage} is busy",
    "accelerator": "{samples:,.0f} samples / {step_s:duration} a step",
    "storage-bandwidth": "{at_once:n request} at a time, {moved:rate} in all / {size:bytes} a "
    "sample",
    "storage-latency": "{at_once:n request} at a time × {samples:,.0f} samples / "
    "{requests_per_batch:n request} of {latency_s:duration} each",
    "storage-client": "{builders} × {samples:,.0f} samples / {client_s:duration} of CPU time in "
    "the client",
}  # fmt: skip
_EXPLANATIONS: Final = {
    "unknown-cause": "{share:percent} of the wait has no recorded cause; the causes named here are "
    "those of the rest. A longer run leaves less unknown.",
    "other-loaders": "{share:percent} of the wait was for {others}, in the same steps. Gains that "
    "are predicted here come only where that is cured, too.",
    "worth-the-same": "{cause} and {best} are worth the same, as far as one run shows.",
    "worth-more-on-cores": "{best} is worth more than {cause}, which caused more of the wait. "
    "Workers compete for cores, so less computing in any stage shortens the wait of all.",
    "worth-more": "{best} is worth more than {cause}, which caused more of the wait. While one "
    "batch is late, others are being built, and what they share limits all of them.",
    "times-add-up": "No ceiling is below the accelerator's, and yet it waits. Without workers, "
    "batches are built while the accelerator is idle, so the times of both add up.",
    "late-now-and-then": "No ceiling is below the accelerator's: on average the loader keeps up. "
    "The accelerator starves because some batches are late, by {cause}.",
    "others-at-the-cores": "Workers wait for cores, although the lowest ceiling is {lowest}. "
    "Ceilings count only what this job computes on average; other processes use the cores, too, "
    "or all workers need them at the same time.",
    "other-ceiling": "The lowest ceiling is {lowest}, the cause is {cause}. A ceiling is the "
    "average rate of one part if nothing else slows it down; the cause is what the accelerator "
    "really waited for. Act on the cause.",
    "start-up-first": "The first advice is about the start of workers, which takes more of each "
    "epoch than {cause}. The verdict and its causes leave that time out.",
    "other-advice": "The first advice is about {changes}, not {cause}: no setting of the loader "
    "makes {cause} cheaper.",
}  # fmt: skip
