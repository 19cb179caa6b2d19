"""Simulates ten million batches on a fake clock, and measures the size of recorder and profile.

Run with ``make bench-memory``; it takes a minute or two.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from pipeprof import store
from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.environment import read_environment
from pipeprof.measure.recorder import Recorder
from pipeprof.measure.ring import SAMPLED_FIELDS
from pipeprof.measure.rows import SOURCE_FIELDS, Floats
from pipeprof.model import LoaderConfig, Recording
from pipeprof.units import format_bytes

BATCHES = 10_000_000
WORKERS = 16
MOST_PROFILE_BYTES, MOST_RECORDER_BYTES = 5_000_000, 100_000_000


class Told:
    """Batches whose fetch time grows over 1,000 batches, then restarts; one in eight is sampled."""

    def columns(self, keys: list[int], moments: Floats) -> tuple[Floats, int]:
        table = np.full((len(keys), len(SOURCE_FIELDS)), np.nan)
        turn = np.array(keys) % 1000
        made = 0.010 + turn / 50_000
        values = {"worker": turn % WORKERS, "samples": 32, "fetch_start_s": turn,
                  "sent_s": turn + made, "fetch_end_s": turn + made, "received_s": turn + made,
                  "arrived_s": turn + made, "read_s": made / 2, "decode_s": made / 4,
                  "transform_s": 0.0, "collate_s": 0.001,
                  "bytes": 4096, "requests": 3, "turns": 4, "sampler_s": 1e-5}  # fmt: skip
        values |= {name: np.where(turn % 8, np.nan, turn / 1e4) for name in SAMPLED_FIELDS}
        for name, value in values.items():
            table[:, SOURCE_FIELDS.index(name)] = value
        return table, 0


def drive(recorder: Recorder, clock: FakeClock, batches: int) -> None:
    turn = recorder.begin()
    turn.source = Told()
    for number in range(batches):
        turn.ask()
        clock.sleep(0.001 * (number % 7))
        turn.deliver(number)
        clock.sleep(0.010)
    turn.leave()


def run(batches: int) -> tuple[int, int]:
    """Return the bytes of the profile, and by how many bytes the process's peak memory grew."""
    summary, clock = Summary(warmup=32), FakeClock()
    recorder = Recorder(clock, fold=lambda arrays: summary.add(Columns(arrays)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    drive(recorder, clock, batches)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    profile = assemble(recording_of(recorder), earlier=summary)
    return len(store.dumps(profile)), grown * 1024


def recording_of(recorder: Recorder) -> Recording:
    return Recording(
        name="endless",
        created="2026-01-01T00:00:00+00:00",
        config=LoaderConfig(WORKERS, prefetch_factor=2, batch_size=32),
        environment=read_environment("none"),
        batches=recorder.log(),
        warmup_batches=32,
        first_batch_s=recorder.first_batch_s,
        epochs=tuple(recorder.epochs),
    )


def main() -> int:
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else BATCHES
    start = time.perf_counter()
    profile, grown = run(batches)
    took = time.perf_counter() - start
    print(f"{batches:,} batches of {WORKERS} workers, driven in {took:.0f} s")
    print(f"  profile   {format_bytes(profile):>9}  bar {format_bytes(MOST_PROFILE_BYTES)}")
    print(f"  recorder  {format_bytes(grown):>9}  bar {format_bytes(MOST_RECORDER_BYTES)}")
    return int(profile > MOST_PROFILE_BYTES or grown > MOST_RECORDER_BYTES)


if __name__ == "__main__":
    sys.exit(main())
