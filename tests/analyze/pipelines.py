"""Recordings of made-up runs whose every figure is known: nothing here is timed."""

from __future__ import annotations

import math

from pipeprof.measure.clock import FakeClock
from pipeprof.measure.loader_pass import Pass
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.rows import SOURCE_FIELDS, Floats, unknown_rows
from pipeprof.model import Environment, LoaderConfig, Recording

ENVIRONMENT = Environment(
    pipeprof="0", python="3.11", torch="2.13", platform="test", cores=2, cores_visible=2,
    ram_bytes=2**30, accelerator="emulated: a sleep of 10.0 ms a step",
)  # fmt: skip


class Told:
    """The source of a made-up pass: a batch's key is what is known of it, by column."""

    def columns(self, keys: list[dict[str, float] | None], moments: Floats) -> tuple[Floats, int]:
        table = unknown_rows(len(keys))
        for place, key in enumerate(keys):
            for name, value in (key or {}).items():
                table[place, SOURCE_FIELDS.index(name)] = value
        return table, sum(key is None for key in keys)


def begun(recorder: Recorder) -> Pass:
    turn = recorder.begin()
    turn.source = Told()
    return turn


def inline_run(
    batches: int = 50,
    read_s: float = 0.004,
    decode_s: float = 0.008,
    collate_s: float = 0.002,
    other_s: float = 0.001,
    step_s: float = 0.010,
    samples: int = 32,
    jitter: float = 0.0,
    sampler_s: float = 0.0,
) -> Recording:
    """``num_workers=0``: the batch is made while the loop waits for it."""
    clock = FakeClock(100.0)
    recorder = Recorder(clock)
    turn = begun(recorder)
    for number in range(batches):
        stretch = 1 + jitter * math.sin(number / 3)
        turn.ask()
        clock.sleep(sampler_s)
        start = clock.now()
        clock.sleep((read_s + decode_s + collate_s + other_s) * stretch)
        turn.deliver({
            "worker": -1, "samples": samples, "fetch_start_s": start, "fetch_end_s": clock.now(),
            "read_s": read_s * stretch, "decode_s": decode_s * stretch, "transform_s": 0.0,
            "collate_s": collate_s * stretch, "cpu_s": (decode_s + collate_s) * stretch,
            "bytes": 1000, "requests": 2, "turns": 2,
        })  # fmt: skip
        clock.sleep(step_s)
    turn.leave()
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
    main process takes them in turn: the recurrence of a DataLoader that prefetches plenty. Half
    of the transfer is serialising, a quarter each pipe and unpickling."""
    clock = FakeClock()
    recorder = Recorder(clock)
    turn = begun(recorder)
    for number in range(batches):
        worker, nth = number % workers, number // workers
        start = nth * fetch_s + worker * fetch_s / workers
        end = start + fetch_s
        turn.ask()
        received = max(end + transfer_s * 3 / 4, clock.now())
        arrived = received + transfer_s / 4
        clock.sleep(arrived - clock.now())
        turn.deliver({
            "worker": worker, "samples": 4, "fetch_start_s": start, "fetch_end_s": end,
            "sent_s": end + transfer_s / 2, "received_s": received, "arrived_s": arrived,
            "read_s": fetch_s / 2, "decode_s": fetch_s / 4, "transform_s": 0.0, "collate_s": 0.0,
            "cpu_s": fetch_s * cpu_share, "bytes": 500, "requests": 1, "turns": 2,
        })  # fmt: skip
        clock.sleep(step_s)
    turn.leave()
    config = LoaderConfig(workers, prefetch_factor=2, batch_size=4, kind="map")
    return recording_of(recorder, config, warmup=2 * workers)


def recording_of(recorder: Recorder, config: LoaderConfig, warmup: int) -> Recording:
    log = recorder.log()
    return Recording(
        name="known", created="2026-01-31T14:25:01+00:00", config=config, environment=ENVIRONMENT,
        batches=log, warmup_batches=warmup, first_batch_s=recorder.first_batch_s,
        epochs=tuple(recorder.epochs), lost_records=recorder.lost_records,
    )  # fmt: skip
