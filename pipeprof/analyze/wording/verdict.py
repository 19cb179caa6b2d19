"""State the verdict in one sentence, with its numbers."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.model import Diagnosis


def headline(diagnosis: Diagnosis, figures: Figures) -> str:
    """Return the sentence. ``figures`` are those of `profile.verdict.headline_figures`, and what
    else is known of the loop. Does rank 0 read its batches? Does a thread take them ahead of it?
    Why is it not observed how they are made? Which other loaders does it wait for?"""
    cause = str(figures["cause"])
    code: str = diagnosis.unjudged or (diagnosis.verdict if diagnosis.has_step else "no-step")
    if code == "no-step" and figures["taken_ahead"]:
        code = "never-waits"
    unseen = cause == "unknown" and figures["unseen"]
    reason = fill(_REASONS["unseen" if unseen else str(figures["reason"])], figures)
    words = {**figures, "why": reason, "wait": fill(_WAITS.get(cause, cause), figures)}
    if not figures["measured"]:
        empty = "elsewhere" if figures["reads_elsewhere"] else "empty"
        code = "unmeasured" if figures["total"] else empty
    return fill(_HEADLINES[code], words, diagnosis)


_SHARE: Final = (
    "the accelerator waited for batches {starved_fraction:share} of the time (95 %: "
    "{starved_interval[0]:points}–{starved_interval[1]:points} %)"
)
_HEADLINES: Final = {
    "empty": "Inconclusive: no batch was measured, as this loader was not iterated. Iterate what "
    "wrap() returned; where a framework builds another loader, wrap that.",
    "elsewhere": "Inconclusive: no batch was measured, as rank 0 reads the batches of this rank, "
    "too. Look at the profile of rank 0.",
    "unmeasured": "Inconclusive: no batch was measured after warm-up; run longer.",
    "fed": f"Fed: {_SHARE}; loading is not the limit.",
    "starved": f"Starved: {_SHARE}; {{of_stall:percent}} of that wait was {{wait}}{{why}}.",
    "inconclusive": f"Inconclusive: {_SHARE}, measured over {{measured}} batches; the interval "
    "spans the {threshold:share} threshold.",
    "taken-ahead": "Inconclusive: a thread takes the batches ahead of the training loop, so how "
    "long that waits is unknown. Wrap what the loop takes them from: iter(loader), or a queue's "
    "get.",
    "never-waits": "No training step is measured, as a thread takes the batches ahead. It never "
    "waits for room: training takes all {samples_per_s:count} samples/s that the loader gives; "
    "limited by {cause}, {of_time:percent} of the time{why}.",
    "iterator-per-batch": "Inconclusive: the loop makes a new iterator for each batch, and each of "
    "them begins anew. Make one for an epoch.",
    "no-step": "No training step: the loader gives {samples_per_s:count} samples/s; limited by "
    "{cause}, {of_time:percent} of the time{why}.",
}
_WAITS: Final = {
    "worker-cpu": "for a core (worker-cpu)",
    "dispatch": "for a worker to be given the batch (dispatch)",
    "pipeline": "for the loader's pipeline",
    "other-loaders": "for other loaders ({others})",
    "start-up": "for workers to start (start-up)",
}
_REASONS: Final = {
    "": "",
    "storage-bandwidth": ", limited by the storage's bandwidth",
    "storage-latency": ", limited by the storage's latency",
    "storage-client": ", limited by the storage's client",
    "tensors": " (of {tensors:n tensor} a batch)",
    "cores": " (building a batch is {reason_share:percent} waiting for a core)",
    "stage-busy": " (its stage {stage} is busy {reason_share:percent} of the time)",
    "stage-unready": " (its stage {stage} has no item ready {reason_share:percent} of the time)",
    "stage-interpreter": ", whose threads compute in Python one at a time (most in {stage})",
    "stage-waited": " ({reason_share:percent} for its stage {stage}, by the library's figures)",
    "limited": ", at a rate that all readers share: saving time elsewhere does not help",
    "interpreter": ", where finished batches waited until the worker's interpreter was free",
    "native": " (building a batch is {reason_share:percent} waiting for native threads)",
    "blocked": " (building a batch is {reason_share:percent} blocked)",
    "unseen": " ({unseen})",
    "computing": " (building a batch is {reason_share:percent} computing)",
}
