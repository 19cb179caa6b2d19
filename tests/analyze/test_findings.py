"""Each finding's rule and words, on made-up runs: what costs the accelerator time."""

from dataclasses import replace

from pipeprof.analyze.assemble import assemble
from pipeprof.model import DataSource, MainProcess
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import found, later, seen, set_to, slow_batches, transferred

GIB = 2**30


def test_workers_that_wait_for_cores_are_too_many():
    crowded = seen(workers_run(workers=4, cpu_share=0.5), runqueue_s=0.015)
    assert found(crowded) == {
        "cpu-oversubscribed": "4 workers on 2 cores; a batch took 30.0 ms to build, and 50 % of "
        "that was waiting for a core. With enough cores, 4.0 would be busy.\n"
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
        "50 % of the time to build a batch was waiting for a core. This job used 0.4 of 2 cores "
        "and needed 0.9."
    )


def test_cores_that_the_host_gives_to_others():
    def text(stolen, waited_s):
        machine = MainProcess(stolen_share=stolen)
        run = seen(workers_run(20, workers=1, cpu_share=0.4), machine, runqueue_s=waited_s)
        return found(run).get("noisy-neighbour", "")

    assert text(0.15, 0.0) == (
        "The host of this virtual machine gave 15 % of its core time to others (steal in "
        "/proc/stat).\nAsk the administrator of the host for dedicated cores: no setting here "
        "gives them back. Measure again on a quiet machine before you change num_workers=1."
    )
    both = text(0.04, 0.015)
    assert "needed 0.9. The host of this virtual machine gave 4 % of its core time" in both
    assert "Look for other processes on these cores" in both
    assert "Ask the administrator of the host" in text(0.15, 0.015)
    for little in (None, 0.0, 0.01):
        assert "host of this" not in text(little, 0.015)
    assert text(0.09, 0.0) == ""


def test_native_threads_are_not_workers():
    crowded = seen(workers_run(cpu_share=0.1), process_cpu_s=0.030, runqueue_s=0.0, threads=7)
    text = found(crowded)["native-threads-oversubscribed"]
    assert text.startswith(
        "90 % of the CPU time of a batch is spent in native threads, not in the workers' main "
        "threads. Each of 2 workers runs at least 4: 8 or more threads on 2 cores, of which 2.0 "
        "were busy."
    )
    one = seen(workers_run(cpu_share=0.1), process_cpu_s=0.030, runqueue_s=0.0, threads=4)
    assert "native-threads-oversubscribed" not in found(one), "a thread for each core"


def test_requests_and_what_each_takes():
    waiting = seen(workers_run(cpu_share=0.1), runqueue_s=0.0, requests=9, bytes=36e3)
    assert found(waiting) == {
        "storage-wait": "While it builds a batch, a worker is blocked for 90 % of 30.0 ms. It "
        "makes 9 requests of 4.00 kB, 3.00 ms each: 1.33 MB/s.\n"
        "Wait in parallel: num_workers=7 instead of 2. Read more at once: many samples in one "
        "file or shard, larger reads. Or keep the data on a nearer, faster storage."
    }
    large = seen(workers_run(cpu_share=0.1), runqueue_s=0.0, requests=1, bytes=64e6)
    assert "Read more" not in found(large)["storage-wait"]


def test_a_wait_of_which_only_the_stage_is_known():
    named = seen(workers_run(cpu_share=0.1), runqueue_s=0.0, requests=0)
    assert (
        "in read: on a network, a disk, a lock or a sleep. 0.2 of 2 cores"
        in found(named)["workers-wait"]
    )
    box = seen(named, read_s=0.0, decode_s=0.0)
    assert 'pipeprof.stage("read")' in found(box)["workers-wait"]


def test_computing_with_cores_to_spare_and_without():
    spare = seen(workers_run(workers=1, cpu_share=0.9), runqueue_s=0.0)
    assert found(spare) == {
        "compute-bound": "A batch takes 27.0 ms of CPU time in the 30.0 ms that a worker needs for "
        "it; 0.9 of 2 cores are busy.\nCompute in parallel: num_workers=2 instead of 1. Use "
        "cheaper decoding or transforms, or compute results once and keep them."
    }
    full = found(seen(workers_run(cpu_share=1.0), runqueue_s=0.0))["compute-bound"]
    assert "More workers than 2 do not help: 2.0 cores" in full
    decoding = found(seen(spare, decode_s=0.024, read_s=0.0))["decode-bound"]
    assert decoding.startswith("80 % of the 30.0 ms to build a batch is decoding")


def test_bytes_from_memory():
    cached = seen(
        workers_run(cpu_share=1.0), MainProcess(available_bytes=GIB),
        runqueue_s=0.0, logical_bytes=2e6, physical_bytes=0.0,
    )  # fmt: skip
    assert "batches read 112 MB; the devices moved 0 B of that." in found(cached)[
        "page-cache-flatters"
    ]  # fmt: skip
    source = DataSource("/data", "csv", 1, 10 * GIB)
    text = found(replace(cached, source=source))["page-cache-flatters"]
    assert "All 10.7 GB do not fit into the 1.07 GB left" in text
    for otherwise in (
        {"physical_bytes": 1e6}, {"physical_bytes": None}, {"logical_bytes": 1e3},
        {"cpu_s": 0.015},  # it blocks: a network's file system, which counts no bytes
    ):  # fmt: skip
        assert "page-cache-flatters" not in found(seen(cached, **otherwise))


def test_a_few_slow_batches():
    text = found(slow_batches())["head-of-line"]
    assert text.startswith("12 of 116 batches took 100 ms to build, the median one 10.0 ms; 9")
    assert "Set in_order=False" in text
    assert "Set prefetch_factor=5 instead of 2" in text
    assert "in_order" not in found(slow_batches(in_order=False))["head-of-line"]
    old = slow_batches()
    old = replace(old, environment=replace(old.environment, torch="2.5.1+cpu"))
    assert "in_order" not in found(old)["head-of-line"]
    assert "head-of-line" not in found(slow_batches(every=200))


def test_a_pause_of_all_workers_is_no_slow_batch_that_others_could_pass():
    """Such as a throttled disk's, which answers no worker until its next quota."""
    run = workers_run(400, fetch_s=0.010, step_s=0.010)
    after = {"fetch_start_s": 0, "asked_s": 1}
    moments = ("fetch_start_s", "fetch_end_s", "sent_s", "received_s", "arrived_s", "asked_s",
               "delivered_s", "done_s")  # fmt: skip
    paused = {
        name: tuple(
            moment + 0.09 * ((index + after.get(name, 2)) // 20)
            for index, moment in enumerate(getattr(run.batches, name))
        )
        for name in moments
    }
    both = seen(run, **paused)
    assert "head-of-line" not in found(both)


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


def test_many_tensors_none_and_one():
    text = found(transferred(tensors=200, batch_bytes=1600))["many-small-tensors"]
    assert text.startswith(
        "A batch is 200 tensors of 8 bytes; the training process spends 8.00 ms on receiving them,"
    )
    assert "num_workers=0 instead of 2" in text
    assert "no tensors" in found(transferred(tensors=0, batch_bytes=0))["pickled-batches"]
    one = found(transferred(tensors=1, batch_bytes=1600))
    assert set(one) == {"in-memory-data"}
    assert (
        "takes 2.00 ms to build, and 24.0 ms to reach the training process" in one["in-memory-data"]
    )


def test_large_batches_need_new_memory():
    """Workers take 30 ms for a batch, of which 10 ms are for its 20 MB."""
    main = MainProcess(new_shared_s_per_byte=0.5e-9, release_shared_s_per_byte=0.1e-9)
    text = found(seen(workers_run(), main, tensors=1, batch_bytes=20e6))["large-batches"]
    assert text.startswith(
        "A batch is 20.0 MB of tensors. Shared memory for it takes a worker about 10.0 ms, 33 % of "
        "the time in which it builds a batch."
    )
    assert "the training process about 2.00 ms, 13 % of its loop" in text
    for size in (2e6, 0.0, None):
        assert "large-batches" not in found(seen(workers_run(), main, batch_bytes=size))
    assert "large-batches" not in found(seen(inline_run(), main, tensors=1, batch_bytes=20e6))


def test_what_main_does_itself():
    text = found(inline_run(sampler_s=0.020))["slow-sampler"]
    assert text.startswith("57 % of the stall was picking indices: 20.0 ms a batch")
    drawn = "torch.utils.data.sampler.SequentialSampler"
    assert "slow-sampler" not in found(set_to(inline_run(sampler_s=0.020), sampler=drawn))
    recording = workers_run(fetch_s=0.002, step_s=0.001)
    shifted = later(recording, asked_s=0, received_s=0, arrived_s=0, delivered_s=1, done_s=1)
    text = found(shifted)["main-process-bound"]
    assert "after the batch had arrived: 10.0 ms a batch" in text


def test_a_main_process_that_something_else_keeps_busy():
    busy = MainProcess(cpu_s=1.0, wall_s=1.0)
    text = found(seen(transferred(tensors=1, batch_bytes=8), busy))["main-process-bound"]
    assert text.startswith("A batch of 1 tensor took 8.00 ms to receive;")
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
