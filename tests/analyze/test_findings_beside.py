"""Findings beside the stall, on made-up runs: starting, memory, descriptors. And all of them on
figures that make no sense."""

import re
from dataclasses import replace
from random import Random

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import BatchLog, DataSource, Epoch, MainProcess, Recording
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import epochs, found, seen, set_to

GIB = 2**30


def test_what_epochs_cost_at_their_edges():
    restarted = replace(workers_run(), epochs=epochs(3, 0.33, 0.1))
    assert found(restarted)["worker-start-up-each-epoch"] == (
        "Starting and stopping 2 workers took 400 ms of a typical epoch of 2.00 s: 20 %, "
        "which the verdict leaves out. The run had 3 epochs.\n"
        "Set persistent_workers=True; it is off."
    )
    for otherwise in (
        replace(restarted, epochs=epochs(1, 0.33, 0.1)),
        replace(restarted, epochs=epochs(3, 0.04, 0.01)),
        set_to(restarted, persistent_workers=True),
    ):
        assert "worker-start-up-each-epoch" not in found(otherwise)


def test_a_slow_start_of_a_short_run():
    slow = replace(workers_run(), first_batch_s=6.0, main=MainProcess(cpu_s=0.1, wall_s=20.0))
    assert "after 6.00 s, 30 % of the run" in found(slow)["slow-start"]
    spawned = found(set_to(slow, start_method="spawn"))["slow-start"]
    assert "With start method spawn each of 2 workers" in spawned
    long = replace(slow, main=MainProcess(cpu_s=0.1, wall_s=600.0))
    assert "slow-start" not in found(long)


def test_threads_at_fork_matter_when_a_client_lives_in_them():
    threads = MainProcess(
        threads_at_fork=66, python_threads_at_fork=("fsspecIO", "Thread-1 (run_forever)", "Timer")
    )
    text = found(replace(workers_run(), main=threads))["fork-with-threads"]
    assert "2 threads of a client ran (fsspecIO, Thread-1 (run_forever)), of 66" in text
    ours = replace(workers_run(), main=threads, source=DataSource("s3://b", "csv", 1, 1))
    assert "fork-with-threads" not in found(ours)
    own = MainProcess(threads_at_fork=66, python_threads_at_fork=("TMonitor",))
    assert "fork-with-threads" not in found(replace(workers_run(), main=own))


def test_room_for_prefetched_batches():
    main = MainProcess(shared_memory_bytes=64 * 2**20, available_bytes=100 * 2**20)
    text = found(seen(workers_run(), main, tensors=1, batch_bytes=10e6))
    assert text["shared-memory-too-small"] == (
        "2 workers × prefetch 2 × 10.0 MB a batch: 50.0 MB prefetched. /dev/shm has 67.1 MB in "
        "all. When it is full, a worker dies of a bus error.\n"
        "Set prefetch_factor=1 instead of 2, or use smaller batches; or enlarge it, in a container "
        "with --shm-size."
    )
    assert "105 MB of memory are left" in text["prefetch-memory"]
    four = found(seen(workers_run(), main, tensors=1, batch_bytes=8e6))
    assert "Set prefetch_factor=1 instead of 2" in four["shared-memory-too-small"], "and one in use"
    huge = found(seen(workers_run(), main, tensors=1, batch_bytes=40e6))
    assert "Use fewer workers than 2" not in huge["prefetch-memory"]
    small = found(seen(workers_run(), main, tensors=1, batch_bytes=1e6))
    assert small == {}


def growing(bytes_per_batch: float, noise: float = 0.0) -> Recording:
    random = Random(0)
    sizes = tuple(2e8 + bytes_per_batch * row + noise * random.random() for row in range(200))
    main = MainProcess(available_bytes=GIB)
    return seen(set_to(workers_run(200), start_method="fork"), main, private_bytes=sizes)


def test_memory_that_grows():
    # 1 MB each 15 ms: 66.7 MB/s in each of two workers
    text = found(growing(1e6))["worker-memory-grows"]
    assert "66.7 MB/s each" in text
    assert "last 8.05 s" in text
    assert "in arrays or tensors" in text
    assert "worker-memory-grows" not in found(growing(1e4))
    assert "worker-memory-grows" not in found(growing(1e5, noise=1e8))
    assert "It is a leak" in found(set_to(growing(1e6), start_method="spawn"))[
        "worker-memory-grows"
    ]  # fmt: skip


def test_workers_that_start_anew_do_not_add_up():
    # five epochs; in each, memory grows to the same 8 MB
    sizes = tuple(2e8 + 2e5 * (row % 40) for row in range(200))
    recording = set_to(seen(workers_run(200), private_bytes=sizes), start_method="fork")
    recording = replace(
        recording, epochs=tuple(Epoch(n, 0.6 * n, 40, 0.6, 0.0, 0.03, 0.0) for n in range(5))
    )
    assert "worker-memory-grows" not in found(recording)


@pytest.mark.parametrize(
    ("walls_s", "slower"),
    [
        ((9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5), True),
        ((9, 1.0, 1.2, 1.1, 1.3, 1.4, 1.5), True),
        ((9, 1.0, 1.2, 1.1, 1.3, 1.5, 1.4), False),
        ((9, 1.0, 1.02, 1.03, 1.04, 1.05, 1.06), False),
        ((9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), False),
        ((9, 1.0, 1.1, 1.2, 1.3, 1.4), False),
    ],
    ids=["steadily", "all but one pair", "not steadily", "by less than 10 %", "equal", "too few"],
)
def test_epochs_that_become_slower(walls_s, slower):
    run = replace(
        workers_run(),
        epochs=tuple(
            Epoch(n, 10.0 * n, 40, wall_s, 0.0, 0.03, 0.0) for n, wall_s in enumerate(walls_s)
        ),
    )
    text = found(run).get("slower-each-epoch", "")
    assert slower == text.startswith("Over 7 epochs, the rate fell")


def test_descriptors():
    main = MainProcess(descriptors=900, descriptor_limit=1024, sharing="file_descriptor")
    text = found(seen(workers_run(), main, tensors=20, batch_bytes=1e3))["descriptors-near-limit"]
    assert text.startswith("900 were open in the training process, 88 % of 1,024 allowed. Each of")
    assert "set_sharing_strategy" in text
    assert "Pack a batch" in text
    worker = found(seen(workers_run(), replace(main, descriptors=9), descriptors=600))
    assert "600 were open in a worker" in worker["descriptors-near-limit"]
    assert found(replace(workers_run(), main=replace(main, descriptors=100))) == {}


_MAGNITUDES = (None, 0.0, 1e-9, 1e-3, 0.5, 1e3, 1e10)


@pytest.mark.parametrize("seed", range(60))
def test_no_figure_however_odd_makes_it_fail(seed):
    """Unknown, zero or absurd: what a kernel tells is not ours to trust."""
    random = Random(seed)
    run = random.choice((workers_run, inline_run))(random.choice((1, 2, 12, 60)))
    kept = ("index", "epoch", "nth", "worker", "samples", "asked_s", "delivered_s", "done_s")
    names = [name for name in BatchLog.__dataclass_fields__ if name not in kept]
    rows = len(run.batches.index)
    odd = {
        name: tuple(random.choices(_MAGNITUDES, k=rows)) if random.random() < 0.5
        else (random.choice(_MAGNITUDES),) * rows
        for name in random.sample(names, random.randrange(len(names)))
    }  # fmt: skip
    figures = {
        name: random.choice((None, 0, 1, 10**12))
        for name in ("cpu_s", "wall_s", "descriptors", "descriptor_limit", "available_bytes",
                     "shared_memory_bytes")
    }  # fmt: skip
    main = MainProcess(pageable_copies=random.choice((0, 9)), **figures)
    run = set_to(seen(run, main, **odd), num_workers=random.choice((0, 1, 2, 64)))
    profile = assemble(replace(run, epochs=epochs(random.choice((0, 2)), 0.0, 0.0)))
    texts = [f"{finding.evidence} {finding.fix}" for finding in profile.findings]
    texts += [f"{advice.why} {advice.proposed}" for advice in profile.recommendations]
    assert [text for text in texts if re.search(r"\b(nan|inf|None)\b", text)] == []
