"""Explain the names of stages, causes and figures to readers of a page.

The explanations of stages are those of ``docs/concepts.md``; a test keeps the two equal.
"""

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
    "serialise": "worker, during the next batch: handed to the queue → pickled, its tensors copied "
    "to shared memory",
    "pipe": "worker → main: pickled → all bytes received in main",
    "unpickle": "main: bytes received → objects again, shared memory attached",
    "reorder": "main: batch arrived → its turn to be delivered",
    "pin": "main: pageable → page-locked memory",
    "ready": "main: batch deliverable → asked for: slack, the healthy state",
    "wait": "main: batch asked for → delivered: the stall, as the host measures it",
    "step": "main: batch delivered → next batch asked for: the training step",
    "pause": "main: between two batches, but no training step: validation, a checkpoint",
    "h2d": "main, in step: host → device copy",
}
"""Stage → where it runs, and where it begins → ends; in the order in which a batch passes them."""

PARTS: Final = {
    "accelerator": "the rate at which the training step consumes samples; a slower loader starves "
    "it",
    "workers": "the rate if all workers fetch batches all the time",
    "worker-cpu": "CPU cores for the workers. As a ceiling: the rate if all free cores fetch "
    "batches. As a cause: a worker waited for a free core",
    "main": "the training process: it picks indices and, without a pin thread, receives batches",
    "storage-bandwidth": "bytes per second that storage and the path to it deliver",
    "storage-latency": "time until storage answers a request, with the observed concurrency",
    "storage-client": "CPU time that the storage client takes for each request",
    "sampler": "main picked the indices of the next batches",
    "pipeline": "the busiest stage of a loader that works in threads. As a ceiling: the rate if it "
    "never rests",
    "dispatch": "a worker was idle because too few batches were requested in advance",
    "start-up": "workers were being started",
    "other-loaders": "the same step took batches from other loaders, and waited for these",
    "unknown": "the cause is not known because a record is missing",
    "starved": "share of the time after warm-up in which the accelerator was idle because no batch "
    "was ready",
    "p50": "half of the batches took no longer; p95, p99: 95 and 99 of 100 took no longer",
    "spread": "(max - min) / median of samples/s over five equal windows of a trial",
}
"""Causes and figures that are not stages."""

WORDS: Final = {**STAGES, **PARTS}
