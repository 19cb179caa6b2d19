"""Each finding's rule and words, on made-up runs: exact, and silent where a figure is unknown."""

import re
from dataclasses import replace
from random import Random

import pytest

from pipeprof.analyze.findings import CASES
from pipeprof.analyze.profile import assemble
from pipeprof.model import BatchLog, DataSource, Epoch, MainProcess, Recording
from tests.analyze.pipelines import inline_run, workers_run

GIB = 2**30


def seen(recording: Recording, main: MainProcess | None = None, **columns) -> Recording:
    """``recording`` with ``columns``, each one figure for all batches, or a column."""
    count = len(recording.batches.index)
    whole = {
        name: value if isinstance(value, tuple) else (value,) * count
        for name, value in columns.items()
    }
    batches = replace(recording.batches, **whole)
    return replace(recording, batches=batches, main=main or recording.main)


def set_to(recording: Recording, **settings) -> Recording:
    return replace(recording, config=replace(recording.config, **settings))


def found(recording: Recording) -> dict[str, str]:
    """Code → evidence and fix, a line each."""
    return {
        finding.code: f"{finding.evidence}\n{finding.fix}"
        for finding in assemble(recording).findings
    }


def test_workers_that_wait_for_cores_are_too_many():
    crowded = seen(workers_run(workers=4, cpu_share=0.5), runqueue_s=0.015)
    assert found(crowded) == {
        "cpu-oversubscribed": "4 workers on 2 cores; making a batch took 30.0 ms, and 50 % of that "
        "was waiting for a core. 4.0 cores would be busy if there were as many.\n"
        "Set num_workers to 2 instead of 4. Only cheaper work per batch, or more cores, makes "
        "loading faster."
    }
    # where the kernel does not tell, busy cores do
    assert "2.0 times its CPU time" in found(workers_run(workers=4, cpu_share=0.5))[
        "cpu-oversubscribed"
    ]  # fmt: skip
    assert found(workers_run(workers=4, cpu_share=0.05)) == {}, "sleeping does not crowd cores"


def test_training_on_the_cores_that_workers_want():
    busy = MainProcess(cpu_s=1.9, wall_s=1.0)
    crowded = seen(workers_run(workers=1, cpu_share=0.4), busy, runqueue_s=0.010)
    text = found(crowded)["cpu-oversubscribed"]
    assert "the training process alone uses 1.9" in text
    assert "Leave num_workers at 1" in text
    assert "torch.set_num_threads" in text


def test_cores_that_somebody_else_uses():
    text = found(seen(workers_run(workers=1, cpu_share=0.4), runqueue_s=0.015))["noisy-neighbour"]
    assert text.startswith(
        "50 % of making a batch was waiting for a core, while this job used 0.4 of 2 cores and "
        "wanted 0.9."
    )


def test_native_threads_are_not_workers():
    crowded = seen(workers_run(cpu_share=0.1), process_cpu_s=0.030, runqueue_s=0.0, threads=7)
    text = found(crowded)["native-threads-oversubscribed"]
    assert text.startswith(
        "90 % of the CPU time to make a batch is spent by threads beside the workers' own, at "
        "least 4 in each of 2 workers: 8 or more threads on 2 cores, of which 2.0 were busy."
    )
    one = seen(workers_run(cpu_share=0.1), process_cpu_s=0.030, runqueue_s=0.0, threads=4)
    assert "native-threads-oversubscribed" not in found(one), "a thread for each core"


def test_requests_and_what_each_takes():
    waiting = seen(workers_run(cpu_share=0.1), runqueue_s=0.0, requests=9, bytes=36e3)
    assert found(waiting) == {
        "storage-latency": "To make a batch a worker is blocked 90 % of 30.0 ms. It makes 9 "
        "requests of 4.00 kB, 3.00 ms each: 1.33 MB/s in all for a worker.\n"
        "Wait in parallel: num_workers=7 instead of 2. Ask for more at once: many samples in one "
        "file or shard, larger reads. Or keep the data on a nearer, faster storage."
    }
    large = seen(workers_run(cpu_share=0.1), runqueue_s=0.0, requests=1, bytes=64e6)
    assert "Ask for more" not in found(large)["storage-latency"]


def test_a_wait_of_which_only_the_stage_is_known():
    named = seen(workers_run(cpu_share=0.1), runqueue_s=0.0, requests=0)
    assert "a sleep in read; 0.2 of 2 cores" in found(named)["workers-wait"]
    box = seen(named, read_s=0.0, decode_s=0.0)
    assert 'pipeprof.stage("read")' in found(box)["workers-wait"]


def test_computing_with_cores_to_spare_and_without():
    spare = seen(workers_run(workers=1, cpu_share=0.9), runqueue_s=0.0)
    assert found(spare) == {
        "compute-bound": "A batch takes 27.0 ms of CPU time in the 30.0 ms that a worker needs for "
        "it; 0.9 of 2 cores are busy.\nCompute in parallel: num_workers=2 instead of 1. Cheaper "
        "decoding or transforms, or results that are computed once and kept, shorten the work "
        "itself."
    }
    full = found(seen(workers_run(cpu_share=1.0), runqueue_s=0.0))["compute-bound"]
    assert "More workers than 2 do not help: 2.0 cores" in full
    decoding = found(seen(spare, decode_s=0.024, read_s=0.0))["decode-bound"]
    assert decoding.startswith("80 % of the 30.0 ms to make a batch is decoding")


def test_bytes_from_memory():
    cached = seen(
        workers_run(cpu_share=1.0), MainProcess(available_bytes=GIB),
        runqueue_s=0.0, logical_bytes=2e6, physical_bytes=0.0,
    )  # fmt: skip
    assert "Of 112 MB that sampled batches read, the devices moved 0 B." in found(cached)[
        "page-cache-flatters"
    ]  # fmt: skip
    source = DataSource("/data", "csv", 1, 10 * GIB)
    text = found(replace(cached, source=source))["page-cache-flatters"]
    assert "10.7 GB in all do not fit into the 1.07 GB left" in text
    for otherwise in (
        {"physical_bytes": 1e6}, {"physical_bytes": None}, {"logical_bytes": 1e3},
        {"cpu_s": 0.015},  # it blocks: a network's file system, which counts no bytes
    ):  # fmt: skip
        assert "page-cache-flatters" not in found(seen(cached, **otherwise))


def slow_batches(every: int = 10, batches: int = 120, **settings) -> Recording:
    """Each ``every``-th batch takes ten times as long, and the loop waits for it."""
    recording = workers_run(batches, fetch_s=0.010, step_s=0.010)
    log = recording.batches
    slow = [index % every == 9 for index in log.index]
    starts = tuple(start - 0.09 * late for start, late in zip(log.fetch_start_s, slow, strict=True))
    asked = tuple(moment - 0.05 * late for moment, late in zip(log.asked_s, slow, strict=True))
    return set_to(seen(recording, fetch_start_s=starts, asked_s=asked), **settings)


def test_a_few_slow_batches():
    text = found(slow_batches())["head-of-line"]
    assert text.startswith("12 of 116 batches took 100 ms to make, the median one 10.0 ms; 9")
    assert "Set in_order=False" in text
    assert "Set prefetch_factor=5 instead of 2" in text
    assert "in_order" not in found(slow_batches(in_order=False))["head-of-line"]
    old = slow_batches()
    old = replace(old, environment=replace(old.environment, torch="2.5.1+cpu"))
    assert "in_order" not in found(old)["head-of-line"]
    assert "head-of-line" not in found(slow_batches(every=200))


def test_uneven_workers():
    recording = workers_run(200)
    starts = tuple(
        start - 0.010 * worker for start, worker
        in zip(recording.batches.fetch_start_s, recording.batches.worker, strict=True)
    )  # fmt: skip
    text = found(seen(recording, fetch_start_s=starts))["uneven-workers"]
    assert text.startswith(
        "Worker #1 takes 40.0 ms to fetch a batch, the others 30.0 ms (medians over 98 batches): "
        "1.3 times as long."
    )
    assert "uneven-workers" not in found(recording)


def transferred(**columns) -> Recording:
    """Main spends 8 ms on receiving a batch that is made in 2."""
    recording = workers_run(200, fetch_s=0.002, transfer_s=0.032, step_s=0.002)
    return seen(recording, **columns)


def test_many_tensors_none_and_one():
    text = found(transferred(tensors=200, batch_bytes=1600))["many-small-tensors"]
    assert text.startswith(
        "A batch is 200 tensors of 8 bytes; the training process spends 8.00 ms on receiving them,"
    )
    assert "num_workers=0 instead of 2" in text
    assert "no tensors" in found(transferred(tensors=0, batch_bytes=0))["pickled-batches"]
    one = found(transferred(tensors=1, batch_bytes=1600))
    assert set(one) == {"in-memory-data"}
    assert "takes 2.00 ms; its way to the training process then takes" in one["in-memory-data"]


def later(recording: Recording, **stops: int) -> Recording:
    """Each turn of the loop lasts 10 ms longer, before those moments that are a stop on."""
    moved = {
        name: tuple(
            moment + 0.01 * (row + stop)
            for row, moment in enumerate(getattr(recording.batches, name))
        )
        for name, stop in stops.items()
    }
    return seen(recording, **moved)


def test_what_main_does_itself():
    text = found(inline_run(sampler_s=0.020))["slow-sampler"]
    assert text.startswith("57 % of the stall was picking indices: 20.0 ms a batch")
    recording = workers_run(fetch_s=0.002, step_s=0.001)
    shifted = later(recording, asked_s=0, received_s=0, arrived_s=0, delivered_s=1, done_s=1)
    text = found(shifted)["main-process-bound"]
    assert "after the batch had arrived: 10.0 ms a batch" in text


def test_a_main_process_that_something_else_keeps_busy():
    busy = MainProcess(cpu_s=1.0, wall_s=1.0)
    text = found(seen(transferred(tensors=1, batch_bytes=8), busy))["main-process-bound"]
    assert text.startswith("It took 8.00 ms to receive a batch of 1 tensor,")
    assert "in-memory-data" not in text


def test_pinning():
    shifted = later(workers_run(fetch_s=0.004, step_s=0.002), asked_s=0, delivered_s=1, done_s=1)
    pinned = seen(shifted, pinned_s=shifted.batches.delivered_s, tensors=20)
    text = found(set_to(pinned, pin_memory=True))["pin-bound"]
    assert "in one thread" in text
    assert "of 20 tensors" in text
    assert "Pack the batch into fewer tensors" in text


def test_copies_to_the_device():
    main = MainProcess(pageable_copies=120, blocking_copies=120)
    copied = seen(workers_run(), main, h2d_s=0.003, h2d_bytes=4e6)
    text = found(copied)
    assert "120 copies in 60 batches" in text["pageable-copies"]
    assert "pin_memory=True; it is off" in text["pageable-copies"]
    assert "non_blocking=True), with pin_memory=True" in text["blocking-copies"]
    on = found(set_to(copied, pin_memory=True))
    assert "method pin_memory()" in on["pageable-copies"]
    assert on["blocking-copies"].endswith("non_blocking=True).")
    assert "pageable-copies" not in found(seen(copied, h2d_s=0.0001)), "too short to matter"


def epochs(count: int, first_batch_s: float, closing_s: float) -> tuple[Epoch, ...]:
    return tuple(
        Epoch(index, 2.0 * index, 30, 2.0, 0.05, first_batch_s, closing_s) for index in range(count)
    )


def test_what_epochs_cost_at_their_edges():
    restarted = replace(workers_run(), epochs=epochs(3, 0.33, 0.1))
    assert found(restarted)["worker-start-up-each-epoch"] == (
        "Starting and stopping 2 workers took 400 ms of a typical epoch of 2.00 s: 20 %, "
        "which the verdict leaves out. 3 epochs were seen.\n"
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


def test_room_for_the_batches_under_way():
    main = MainProcess(shared_memory_bytes=64 * 2**20, available_bytes=100 * 2**20)
    text = found(seen(workers_run(), main, tensors=1, batch_bytes=10e6))
    assert text["shared-memory-too-small"] == (
        "2 workers × prefetch 2 × 10.0 MB a batch: 50.0 MB under way, and /dev/shm has 67.1 MB in "
        "all. A worker that finds it full dies of a bus error.\n"
        "Set prefetch_factor=1 instead of 2, or use smaller batches; or give more, in a container "
        "with --shm-size."
    )
    assert "105 MB of memory are left" in text["prefetch-memory"]
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


def test_descriptors():
    main = MainProcess(descriptors=900, descriptor_limit=1024, sharing="file_descriptor")
    text = found(seen(workers_run(), main, tensors=20, batch_bytes=1e3))["descriptors-near-limit"]
    assert text.startswith("900 were open in the training process, 88 % of 1,024 allowed. Each of")
    assert "set_sharing_strategy" in text
    assert "Pack a batch" in text
    worker = found(seen(workers_run(), replace(main, descriptors=9), descriptors=600))
    assert "600 were open in a worker" in worker["descriptors-near-limit"]
    assert found(replace(workers_run(), main=replace(main, descriptors=100))) == {}


def test_fewer_cores_than_shown_matters_only_where_loading_is_not_quick_enough():
    recording = workers_run()
    small = replace(recording.environment, cores=2, cores_visible=64)
    text = found(replace(recording, environment=small))["fewer-cores-than-shown"]
    assert text.startswith("2 of 64 cores may be used here")
    assert "num_workers=2 is within them" in text
    fed = workers_run(step_s=0.050)
    assert found(replace(fed, environment=small)) == {}


def test_a_fed_accelerator_hides_no_pathology_of_time():
    fed = seen(workers_run(step_s=0.050, cpu_share=0.5), runqueue_s=0.015, tensors=200,
               batch_bytes=1e3)  # fmt: skip
    assert assemble(fed).diagnosis.verdict == "fed"
    assert found(fed) == {}


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


def test_each_case_has_a_code_of_its_own_and_words_that_fit_a_page():
    assert len({case.__name__ for case in CASES}) == len(CASES)
    assert all(case.__doc__ or case.__name__ in ("too_few", "lost") for case in CASES)


@pytest.mark.parametrize(
    ("recording", "cause"),
    [
        (seen(workers_run(cpu_share=0.1), runqueue_s=0.0), "fetch (making a batch is 90 % blocked)"),
        (seen(workers_run(cpu_share=0.9), runqueue_s=0.0),
         "fetch (making a batch is 90 % computing)"),
        (seen(workers_run(cpu_share=0.3), runqueue_s=0.018),
         "fetch (making a batch is 60 % waiting for a core)"),
        (seen(workers_run(cpu_share=0.1), runqueue_s=0.0, process_cpu_s=0.030),
         "fetch (making a batch is 90 % waiting for native threads)"),
        (transferred(tensors=200, batch_bytes=1600), "transfer (of 200 tensors a batch)"),
        (workers_run(), "fetch"),
    ],
)  # fmt: skip
def test_the_headline_names_what_lies_behind(recording, cause):
    assert assemble(recording).diagnosis.headline.endswith(f"of that wait was {cause}.")
