"""Recordings of made-up runs whose every figure is known: nothing here is timed."""

from __future__ import annotations

import math

from pipeprof.measure.clock import FakeClock
from pipeprof.measure.recorder import Origin, Recorder
from pipeprof.measure.ring import WorkerRecord
from pipeprof.model import Environment, LoaderConfig, Recording

ENVIRONMENT = Environment(
    pipeprof="0", python="3.11", torch="2.13", platform="test", cores=2, cores_visible=2,
    ram_bytes=2**30, accelerator="emulated: a sleep of 10.0 ms a step",
)  # fmt: skip


def inline_run(
    batches: int = 50,
    read_s: float = 0.004,
    decode_s: float = 0.008,
    collate_s: float = 0.002,
    other_s: float = 0.001,
    step_s: float = 0.010,
    samples: int = 32,
    jitter: float = 0.0,
) -> Recording:
    """``num_workers=0``: the batch is made while the loop waits for it."""
    clock = FakeClock(100.0)
    recorder = Recorder(clock)
    recorder.begin_epoch()
    for number in range(batches):
        stretch = 1 + jitter * math.sin(number / 3)
        recorder.ask()
        start = clock.now()
        clock.sleep((read_s + decode_s + collate_s + other_s) * stretch)
        record = WorkerRecord(
            start, clock.now(), read_s * stretch, decode_s * stretch, 0.0, collate_s * stretch,
            cpu_s=(decode_s + collate_s) * stretch, bytes=1000, requests=2,
        )  # fmt: skip
        recorder.deliver(samples, Origin(-1, clock.now(), record), expects_record=True)
        clock.sleep(step_s)
    recorder.leave()
    return recording_of(recorder, LoaderConfig(0, batch_size=samples, kind="map"), warmup=1)


def workers_run(
    batches: int = 60,
    workers: int = 2,
    fetch_s: float = 0.030,
    transfer_s: float = 0.001,
    step_s: float = 0.005,
    cpu_share: float = 0.2,
) -> Recording:
    """In order, each worker makes the next of its batches as soon as the last is made, and the
    main process takes them in turn: the recurrence of a DataLoader that prefetches plenty."""
    clock = FakeClock()
    recorder = Recorder(clock)
    recorder.begin_epoch()
    for number in range(batches):
        worker, turn = number % workers, number // workers
        start = turn * fetch_s + worker * fetch_s / workers
        arrives = start + fetch_s + transfer_s
        recorder.ask()
        clock.sleep(arrives - clock.now())
        arrived = max(arrives, clock.now())
        record = WorkerRecord(
            start, start + fetch_s, fetch_s / 2, fetch_s / 4, 0.0, 0.0, fetch_s * cpu_share, 500, 1
        )
        recorder.deliver(4, Origin(worker, arrived, record), expects_record=True)
        clock.sleep(step_s)
    recorder.leave()
    config = LoaderConfig(workers, prefetch_factor=2, batch_size=4, kind="map")
    return recording_of(recorder, config, warmup=2 * workers)


def recording_of(recorder: Recorder, config: LoaderConfig, warmup: int) -> Recording:
    return Recording(
        name="known", created="2026-01-31T14:25:01+00:00", config=config, environment=ENVIRONMENT,
        batches=recorder.log(), warmup_batches=warmup,
        first_batch_s=recorder.first_batch_s[0] if recorder.first_batch_s else None,
        lost_records=recorder.lost_records,
    )  # fmt: skip
