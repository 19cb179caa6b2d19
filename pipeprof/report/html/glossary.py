"""What each stage and part is, for whoever meets its name. The stages' words are those of
``docs/concepts.md``; a test holds the two equal."""

from __future__ import annotations

from typing import Final

STAGES: Final = {
    "fetch": "worker: the worker takes up a batch → its samples are there: read, decode, "
    "transform, and whatever else the data set does",
    "read": "worker, in fetch: bytes asked of storage → bytes in RAM",
    "decode": "worker, in fetch: encoded bytes → arrays",
    "transform": "worker, in fetch: arrays → samples: your own code",
    "collate": "worker: samples → batch",
    "transfer": "worker → main: batch handed to the queue → unpickled in main: the three that "
    "follow",
    "serialise": "worker, beside the next batch: handed to the queue → pickled, its tensors copied "
    "to shared memory",
    "pipe": "worker → main: pickled → all bytes received in main",
    "unpickle": "main: bytes received → objects again, shared memory attached",
    "reorder": "main: batch arrived → its turn to be delivered",
    "pin": "main: pageable → page-locked memory",
    "ready": "main: batch deliverable → asked for: slack, the healthy state",
    "wait": "main: batch asked for → delivered: the stall, seen from the host",
    "step": "main: batch delivered → next batch asked for: the training step",
    "pause": "main: between two batches, but no training step: validation, a checkpoint",
    "h2d": "main, in step: host → device copy",
}
"""Where, and from → to; in the order in which a batch passes them."""

PARTS: Final = {
    "accelerator": "what the training step takes; a loader below it starves it",
    "workers": "they all make batches all the time",
    "worker-cpu": "the cores for making batches: as a ceiling, all that are left do nothing else; "
    "as a cause, a worker wanted one and had none",
    "main": "the training process picks indices and, without a pin thread, receives batches",
    "storage-bandwidth": "bytes a second that storage and the path to it give",
    "storage-latency": "the time until storage answers, times how much is asked at once",
    "storage-client": "the CPU time that the storage's client takes for each request",
    "sampler": "main picks the indices of batches to come",
    "dispatch": "a worker had nothing to do: too few batches were asked for ahead",
    "start-up": "workers were being started",
    "unknown": "what was waited for is not known: a record is missing",
    "starved": "the share of the time after warm-up in which the accelerator had nothing to do "
    "because no batch was there",
    "p50": "half of the batches took no longer; p95, p99: 95, 99 of 100 took no longer",
    "spread": "(max - min) / median of samples/s over five equal windows of a trial",
}
"""Names that are no stages."""

WORDS: Final = {**STAGES, **PARTS}


def word(name: str) -> str:
    """The glossary's entry for ``name``; empty for a name that it does not know."""
    return name if name in WORDS else ""
