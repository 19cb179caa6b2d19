"""A run of ten million batches on a fake clock: how large the recorder and the profile grow.

Each row's worker record is a real one, packed as a worker does, with its samples of the machine.
Run with ``make bench-memory``; it takes a minute or two.
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from collections.abc import Iterator
from math import nan

from pipeprof import store
from pipeprof.analyze.columns import Columns
from pipeprof.analyze.profile import assemble
from pipeprof.analyze.summary import Summary
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.environment import read_environment
from pipeprof.measure.recorder import Origin, Recorder
from pipeprof.measure.ring import SAMPLED, UNSAMPLED, pack_always, pack_sample
from pipeprof.model import LoaderConfig, Recording
from pipeprof.units import format_bytes

BATCHES = 10_000_000
WORKERS = 16
MOST_PROFILE_BYTES, MOST_RECORDER_BYTES = 5_000_000, 100_000_000


def records() -> Iterator[bytes]:
    """Of batches that take longer and longer and then start anew, every eighth of them sampled."""
    for turn in itertools.cycle(range(1000)):
        start, made = 1.0 + turn, 0.010 + turn / 50_000
        always = pack_always(start, start + made, made / 2, made / 4, 0.0, 0.001, 4096, 3, 4)
        sample = [made / 3, *[turn / 1e4] * (len(SAMPLED) - 1)]
        yield always + (UNSAMPLED if turn % 8 else pack_sample(sample))


def drive(recorder: Recorder, clock: FakeClock, batches: int) -> None:
    told = list(itertools.islice(records(), 1000))
    turn = recorder.begin()
    for number in range(batches):
        turn.ask()
        clock.sleep(0.001 * (number % 7))
        origin = Origin(number % WORKERS, clock.now(), clock.now(), nan, 1e-5, told[number % 1000])
        turn.deliver(32, origin, expects_record=True)
        clock.sleep(0.010)
    turn.leave()


def run(batches: int) -> tuple[int, int]:
    """Bytes of the profile, and what the process grew by at its largest."""
    summary, clock = Summary(warmup=32), FakeClock()
    recorder = Recorder(clock, fold=lambda arrays: summary.add(Columns(arrays)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    drive(recorder, clock, batches)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    recording = Recording(
        name="endless",
        created="2026-01-01T00:00:00+00:00",
        config=LoaderConfig(WORKERS, prefetch_factor=2, batch_size=32),
        environment=read_environment("none"),
        batches=recorder.log(),
        warmup_batches=32,
        first_batch_s=recorder.first_batch_s,
        epochs=tuple(recorder.epochs),
    )
    return len(store.dumps(assemble(recording, earlier=summary))), grown * 1024


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
