"""The cure fits the cause, on made-up runs: exact."""

from dataclasses import replace

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.model import MainProcess, Recommendation, Recording
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import epochs, found, seen, set_to, slow_batches, transferred


def advised(recording: Recording) -> dict[str, Recommendation]:
    return {f"{one.setting} {one.proposed}": one for one in assemble(recording).recommendations}


def test_as_many_workers_as_the_accelerator_takes():
    # 30 ms of work for a turn of 5 ms of training and 0.25 of receiving, and some to spare
    (advice,) = advised(workers_run()).values()
    assert (advice.setting, advice.current, advice.proposed) == ("num_workers", "2", "7")
    assert advice.predicted_samples_per_s == pytest.approx(4 / 0.00525, rel=0.1)
    assert "one worker gives 133 samples/s here, the accelerator takes 800" in advice.why
    assert "the next limit would be the accelerator" in advice.why
    assert "Simulated with this run's batches, not tried" in advice.why
    assert advice.code == "DataLoader(…, num_workers=7, prefetch_factor=2, persistent_workers=True)"


def test_more_workers_come_with_what_they_bring_and_what_they_take():
    main = MainProcess(shared_memory_bytes=10**9, available_bytes=10**10)
    (advice,) = advised(
        seen(workers_run(), main, tensors=1, batch_bytes=1e6, private_bytes=50e6)
    ).values()
    low, high = advice.interval
    assert low < advice.predicted_samples_per_s < high
    assert low > 4 / 0.030 * 2, "more than two workers make"
    assert advice.predicted_starved == pytest.approx(0.1, abs=0.08), "seven meet on two cores"
    assert advice.predicted_starved_interval[0] <= advice.predicted_starved
    # five workers more, with two batches each; 6 ms of CPU for each batch
    assert advice.cost.shared_memory_bytes == 10e6
    assert advice.cost.ram_bytes == 10e6 + 5 * 50e6
    more_per_s = (advice.predicted_samples_per_s - 2 * 4 / 0.030) / 4
    assert advice.cost.cores == pytest.approx(more_per_s * 0.006, rel=0.05)
    assert advice.settle is None, "nothing is open"


def test_waiting_for_the_interpreter_of_the_only_worker_speaks_for_another():
    """What main did not compute meanwhile it waited for, and would not for a second worker."""
    times = {"fetch_s": 0.012, "transfer_s": 0.04, "step_s": 0.002, "cpu_share": 0.95}
    busy = workers_run(18, workers=1, **times)  # so few that nothing is simulated
    waits, computes = MainProcess(cpu_s=0.05, wall_s=1.0), MainProcess(cpu_s=0.9, wall_s=1.0)
    assert advised(seen(busy, waits))["num_workers 2"].predicted_samples_per_s
    assert not [key for key in advised(seen(busy, computes)) if key.startswith("num_workers 2")]


@pytest.mark.parametrize(("beside_s", "simulated"), [(0.001, True), (0.003, False)])
def test_threads_that_send_batches_are_not_those_of_a_library(beside_s, simulated):
    """A batch of 6 ms; of a library's own threads the simulator knows nothing."""
    run = workers_run(fetch_s=0.006, step_s=0.001)
    threads = seen(run, process_cpu_s=0.0012 + beside_s, runqueue_s=0.0, threads=3)
    (advice, *_) = assemble(threads).recommendations
    assert advice.setting == "num_workers"
    assert (advice.interval is not None) == simulated


def test_what_one_run_cannot_tell_is_a_range_and_the_run_that_would():
    """Two workers read 40 MB/s: is that all that the storage gives, or what each is given?"""
    reading = seen(workers_run(cpu_share=0.05), bytes=600e3, requests=1)
    (advice,) = advised(reading).values()
    assert advice.predicted_samples_per_s is None
    assert advice.predicted_starved is None
    low, high = advice.interval
    assert low < 1.1 * 2 * 4 / 0.030, "no more than now"
    assert high > 0.9 * 4 / 0.00525, "or all that the accelerator takes"
    assert advice.settle == (
        f"a short run with num_workers={advice.proposed}: "
        f"pipeprof run --set num_workers={advice.proposed} train.py"
    )
    assert "if together they use all of the storage's bandwidth" in advice.why


def test_a_run_that_is_too_short_says_how_much_longer():
    (advice,) = advised(workers_run(22)).values()
    assert advice.interval is None
    assert "Estimated from this run alone, not tried. 2 more batches would be enough" in advice.why


def test_a_few_slow_batches_give_a_direction_and_no_number():
    run = workers_run()
    late = tuple(
        start - 0.2 * (index in (20, 30, 40))
        for index, start in zip(run.batches.index, run.batches.fetch_start_s, strict=True)
    )
    (advice,) = advised(seen(run, fetch_start_s=late)).values()
    assert advice.setting == "num_workers"
    assert advice.predicted_samples_per_s is advice.interval is None
    # 3 of 56 were slow: twenty of them come in 373
    assert "run 318 more batches for that" in advice.why


def test_no_more_workers_than_descriptors_for_their_tensors():
    main = MainProcess(descriptor_limit=144, sharing="file_descriptor")
    (advice,) = advised(seen(workers_run(), main, tensors=8, batch_bytes=1e6)).values()
    assert advice.proposed == "4", "four times two batches of eight tensors, and one: half of 144"
    free = replace(main, sharing="file_system")
    (advice,) = advised(seen(workers_run(), free, tensors=8, batch_bytes=1e6)).values()
    assert int(advice.proposed) > 4


def test_as_many_workers_as_cores_for_work_that_computes():
    advice, short = advised(workers_run(workers=1, cpu_share=1.0)).values()
    assert advice.proposed == "2"
    assert short.setting == "cores", "two workers do not feed it either"
    assert advice.predicted_samples_per_s == pytest.approx(2 * 4 / 0.030, rel=0.15)
    assert "the next limit would be 2.0 free cores" in advice.why
    busy = replace(workers_run(workers=1, cpu_share=1.0), main=MainProcess(cpu_s=0.95, wall_s=1.0))
    assert "num_workers 2" not in advised(busy), "the training needs the other core"


def test_no_more_workers_than_memory_has_room_for():
    main = MainProcess(shared_memory_bytes=100 * 10**6, available_bytes=10**10)
    (advice,) = advised(seen(workers_run(), main, tensors=1, batch_bytes=7e6)).values()
    assert advice.proposed == "3", "three times two batches, and the one in use, in half of 100 MB"
    assert "the next limit would be memory for prefetched batches (2 a worker)" in advice.why


def test_workers_where_there_are_none():
    (advice,) = advised(inline_run()).values()
    assert (advice.current, advice.proposed) == ("0", "2")
    assert advice.predicted_samples_per_s == pytest.approx(32 / 0.0103, rel=0.06)
    assert "get_worker_info" not in advice.why
    (advice,) = advised(set_to(inline_run(), kind="iterable")).values()
    assert "must divide its samples among workers" in advice.why


def test_native_threads_of_main_may_compute_or_wait():
    """Beside a main thread that computes they may only wait; beside one that waits they compute."""
    busy, waits = (
        seen(inline_run(step_s=0.001), cpu_s=own_s, process_cpu_s=own_s + 0.015, runqueue_s=0.0)
        for own_s in (0.015, 0.003)
    )
    advice = advised(busy)["num_workers 2"]
    assert advice.predicted_samples_per_s is None
    # two cores take 15 ms or 7.5 ms for a batch
    assert advice.interval == (pytest.approx(32 / 0.015), pytest.approx(32 / 0.0075))
    assert "whether native threads compute, or use cores to wait" in advice.why
    advice = advised(waits)["num_workers 2"]
    assert advice.predicted_samples_per_s == pytest.approx(32 / 0.009), "18 ms of CPU a batch"


def test_workers_write_their_batches_into_new_shared_memory():
    """In main a batch takes 15 ms; in a worker 10 ms more, for its 20 MB."""
    in_main = seen(inline_run(step_s=0.001), tensors=1, batch_bytes=20e6)
    counted = seen(in_main, MainProcess(new_shared_s_per_byte=0.5e-9))
    (cheap, *_), (advice, *_) = (advised(each).values() for each in (in_main, counted))
    assert "one worker gives 2,133 samples/s here" in cheap.why
    assert "one worker gives 1,280 samples/s here" in advice.why
    assert advice.interval[1] < cheap.predicted_samples_per_s, "on two cores"
    measured = seen(workers_run(), MainProcess(new_shared_s_per_byte=0.5e-9), batch_bytes=20e6)
    assert advised(measured).keys() == advised(seen(workers_run(), batch_bytes=20e6)).keys()


def test_with_workers_the_step_also_gives_back_the_shared_memory_of_a_batch():
    """Two workers feed a step of 10 ms, which takes 4 ms more for batches of 20 MB."""
    in_main = seen(inline_run(), tensors=1, batch_bytes=20e6)
    counted = seen(in_main, MainProcess(release_shared_s_per_byte=0.2e-9))
    (short,), (long,) = (advised(each).values() for each in (in_main, counted))
    longer = short.predicted_samples_per_s / long.predicted_samples_per_s
    assert longer == pytest.approx(14.3 / 10.3, rel=0.1)


def test_no_workers_for_what_costs_more_to_send_than_to_make():
    quick = inline_run(read_s=0.001, decode_s=0.001, collate_s=0.001, other_s=0.0, step_s=0.005)
    assert "num_workers 1" in advised(quick)
    (advice,) = advised(seen(quick, tensors=200, batch_bytes=1600)).values()
    assert "not more workers" in advice.proposed
    assert "about 30.3 ms to receive from a worker" in advice.why


def test_fewer_workers_where_the_cores_are_used_up():
    crowded = seen(workers_run(workers=6, cpu_share=0.3, step_s=0.001), runqueue_s=0.021)
    fewer, short = advised(crowded).values()
    assert (fewer.setting, fewer.current, fewer.proposed) == ("num_workers", "6", "2")
    assert fewer.predicted_samples_per_s is None, "no gain is promised"
    assert "9.00 ms of CPU time" in fewer.why
    assert short.setting == "cores"


def test_no_more_workers_where_cores_are_full():
    (advice,) = advised(workers_run(cpu_share=1.0)).values()
    assert advice.setting == "cores"
    assert "at most 267 samples/s with any number of workers" in advice.why
    (advice,) = advised(workers_run(cpu_share=1.0, step_s=0.0)).values()
    assert advice.proposed == "batches that cost less to build, not more workers"
    assert "at most 267 samples/s; more workers do not raise it" in advice.why


def test_tensors_are_packed_or_made_by_main():
    many = transferred(tensors=200, batch_bytes=1600)
    pack, inline = advised(many).values()
    assert (inline.setting, inline.current, inline.proposed) == ("num_workers", "2", "0")
    assert inline.predicted_samples_per_s == pytest.approx(4 / 0.004)
    assert (pack.setting, pack.current) == ("collate_fn", "200 tensors a batch")
    assert pack.predicted_samples_per_s == pytest.approx(4 / (0.002 + 0.008 / 200))
    assert "torch.stack" in pack.code
    assert set(advised(transferred(tensors=1, batch_bytes=8))) == {"num_workers 0"}


def test_slow_batches_pass_or_are_outlasted():
    order, prefetch = advised(slow_batches()).values()
    assert (order.setting, order.current, order.proposed) == ("in_order", "True", "False")
    assert (prefetch.setting, prefetch.current, prefetch.proposed) == ("prefetch_factor", "2", "5")
    assert "10 prefetched batches last that long, 4 do not" in prefetch.why
    assert order.predicted_samples_per_s is None, "twelve slow batches are too few for a number"
    many = advised(slow_batches(batches=300)).values()
    assert [advice.predicted_samples_per_s for advice in many] == pytest.approx([4 / 0.01025] * 2)


def test_what_a_generator_computes_belongs_into_workers_and_what_blocks_it_is_not_known():
    run = inline_run(read_s=0)
    generator = replace(run, config=replace(run.config, kind="other"))
    (advice,) = advised(seen(generator, runqueue_s=0.0)).values()
    assert (advice.current, advice.proposed) == ("0, in the training loop", "2, in a DataLoader")
    assert "IterableDataset" in advice.code
    blocked = seen(generator, cpu_s=0.001, runqueue_s=0.0)
    assert advised(blocked) == {}


def test_a_sampler_is_not_cured_by_workers():
    (advice, *_) = advised(inline_run(read_s=0, decode_s=0, sampler_s=0.020)).values()
    assert advice.setting == "sampler"
    assert "whatever num_workers is" in advice.why


def test_what_epochs_and_copies_cost_is_advised_on_even_where_the_accelerator_is_fed():
    fed = workers_run(step_s=0.050)
    assert advised(fed) == {}
    assert set(advised(replace(fed, epochs=epochs(3, 0.33, 0.1)))) == {"persistent_workers True"}
    main = MainProcess(pageable_copies=60, blocking_copies=60)
    copied = seen(fed, main, h2d_s=0.010, h2d_bytes=4e6)
    assert set(advised(copied)) == {"pin_memory + non_blocking True + True"}


def test_what_saves_more_of_an_epoch_comes_first():
    starved = workers_run()  # more workers save two thirds of what is not the start of workers
    short = assemble(replace(starved, epochs=epochs(3, 1.5, 0.2)))
    assert [each.setting for each in short.recommendations] == ["persistent_workers", "num_workers"]
    assert "1.67 s of its 2.00 s now" in short.recommendations[0].why
    assert short.recommendations[0].predicted_epoch_saving == pytest.approx(1.67 / 2.0)
    assert "The first advice is about the start of workers" in short.diagnosis.disagreements[-1]
    longer = advised(replace(starved, epochs=epochs(3, 0.4, 0.1)))
    assert list(longer) == ["num_workers 7", "persistent_workers True"]


def test_settings_that_a_loader_does_not_take_are_not_advised():
    fixed = ("prefetch_factor", "persistent_workers", "in_order")
    assert advised(slow_batches(fixed=fixed)).keys().isdisjoint(advised(slow_batches()))
    starved = set_to(replace(workers_run(), epochs=epochs(3, 1.5, 0.2)), fixed=fixed)
    (advice,) = advised(starved).values()
    assert advice.code == f"DataLoader(…, num_workers={advice.proposed})"
    assert "worker-start-up-each-epoch" not in found(starved)


def test_nothing_is_advised_on_what_is_not_known():
    blind = seen(workers_run(), fetch_start_s=None, fetch_end_s=None, cpu_s=None)
    assert advised(blind) == {}
    assert advised(workers_run(12)) == {}, "too short for a verdict"


@pytest.mark.parametrize("recording", [
    workers_run(), workers_run(cpu_share=1.0), inline_run(), slow_batches(),
    transferred(tensors=200, batch_bytes=1600), seen(workers_run(workers=4), runqueue_s=0.02),
])  # fmt: skip
def test_findings_and_advice_agree(recording):
    """A number of workers that a finding names is the one that is advised."""
    texts = " ".join(found(recording).values())
    for advice in assemble(recording).recommendations:
        if advice.setting == "num_workers" and "instead of" in texts:
            assert f"num_workers={advice.proposed}" in texts or f"to {advice.proposed}" in texts
    assert len(assemble(recording).recommendations) <= 3
