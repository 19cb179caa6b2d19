"""What a profile says of its ceilings, and of parts that name different things."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.model import Ceiling


def ceilings(limits: Mapping[str, tuple[float, Figures]], run: object) -> dict[str, Ceiling]:
    """The limit of each resource with its formula, in the order given."""
    return {
        name: Ceiling(samples_per_s, fill(_FORMULAS[name], figures, run))
        for name, (samples_per_s, figures) in limits.items()
    }


def explanations(disagreements: Iterable[tuple[str, Figures]]) -> tuple[str, ...]:
    """Why parts of a report disagree; each a sentence or two."""
    return tuple(fill(_EXPLANATIONS[code], figures) for code, figures in disagreements)


_EACH: Final = "{samples:,.0f} samples / {seconds:duration} "
_RECEIPT: Final = "«, beside {receipt_s:duration} to receive it»"
_FORMULAS: Final = {
    "workers": "{makers} × {samples:,.0f} samples / {made_s:duration} to make a batch",
    "worker-cpu": "{cores_left:n core} × {samples:,.0f} samples / {cpu_s:duration} of CPU a batch"
    "«{shared:if}{main_counts:unless} ({cores:n core} shared by {environment.ranks:n rank})»"
    "«{shared:unless}{main_counts:if} ({cores:n core} {main_cores:.1f} busy with the training "
    "process)»«{shared:if}{main_counts:if} ({cores:n core} shared by {environment.ranks:n rank}, "
    "{main_cores:.1f} busy with the training process)»",
    "transfer": f"{_EACH}to receive a batch",
    "pin": f"{_EACH}in the thread that pins{_RECEIPT}",
    "main": f"{_EACH}of the training process, to pick indices{_RECEIPT}",
    "h2d": f"{_EACH}to copy a batch to the device",
    "accelerator": "{samples:,.0f} samples / {step_s:duration} a step",
    "storage-bandwidth": "{at_once:n request} at a time, {moved:rate} in all / {size:bytes} a "
    "sample",
    "storage-latency": "{at_once:n request} at a time × {samples:,.0f} samples / "
    "{requests_per_batch:n request} of {latency_s:duration} each",
    "storage-client": "{makers} × {samples:,.0f} samples / {client_s:duration} of the client's CPU",
}  # fmt: skip
_EXPLANATIONS: Final = {
    "unknown-cause": "No record tells what {share:percent} of the wait was for: what is named here "
    "is of the rest. A longer run leaves less unknown.",
    "worth-the-same": "{cause} and {best} are worth the same, as far as one run tells.",
    "worth-more-on-cores": "More is gained from {best} than from {cause}, which was waited for "
    "longer: workers compete for cores, so whatever computes less, in any stage, shortens the wait "
    "of all.",
    "worth-more": "More is gained from {best} than from {cause}, which was waited for longer: "
    "while one batch is waited for, others are made, and what they have in common limits all of "
    "them.",
    "times-add-up": "No ceiling is below the accelerator's, and yet it waits: without workers a "
    "batch is made while the accelerator stands still, so the times of both add up.",
    "late-now-and-then": "No ceiling is below the accelerator's: on average the loader keeps up. "
    "It is starved because batches are late now and then, by {cause}.",
    "others-at-the-cores": "Workers wait for cores although the lowest ceiling is {lowest}: "
    "ceilings count what this job computes, and other processes are at the cores, too, or workers "
    "want them all at once.",
    "other-ceiling": "The lowest ceiling is {lowest}, the cause is {cause}: a ceiling is what one "
    "part allows if nothing else holds it up, on average; the cause is what really was waited for. "
    "Act on the cause.",
    "other-advice": "The first advice is about {changes}, not {cause}: no setting of the loader "
    "makes {cause} cheaper.",
}  # fmt: skip
