"""The cure fits the cause, on made-up runs: exact."""

from dataclasses import replace

import pytest

from pipeprof.analyze.profile import assemble
from pipeprof.model import MainProcess, Recommendation, Recording
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import epochs, found, seen, set_to, slow_batches, transferred


def advised(recording: Recording) -> dict[str, Recommendation]:
    return {f"{one.setting} {one.proposed}": one for one in assemble(recording).recommendations}


def test_as_many_workers_as_the_accelerator_takes():
    # 30 ms of work for a turn of 5 ms of training and 0.25 of receiving, and some to spare
    (advice,) = advised(workers_run()).values()
    assert (advice.setting, advice.current, advice.proposed) == ("num_workers", "2", "7")
    assert advice.predicted_samples_per_s == pytest.approx(4 / 0.00525)
    assert "one worker makes 133 samples/s here, the accelerator takes 800" in advice.why
    assert "then the accelerator would be the limit" in advice.why
    assert "not tried" in advice.why
    assert advice.code == "DataLoader(…, num_workers=7, prefetch_factor=2, persistent_workers=True)"


def test_as_many_workers_as_cores_for_work_that_computes():
    (advice,) = advised(workers_run(workers=1, cpu_share=1.0)).values()
    assert advice.proposed == "2"
    assert advice.predicted_samples_per_s == pytest.approx(2 * 4 / 0.030)
    assert "then 2.0 free cores would be the limit" in advice.why
    busy = replace(workers_run(workers=1, cpu_share=1.0), main=MainProcess(cpu_s=0.95, wall_s=1.0))
    assert "num_workers 2" not in advised(busy), "the training needs the other core"


def test_no_more_workers_than_memory_has_room_for():
    main = MainProcess(shared_memory_bytes=100 * 10**6, available_bytes=10**10)
    (advice,) = advised(seen(workers_run(), main, tensors=1, batch_bytes=8e6)).values()
    assert advice.proposed == "3", "three times two batches in half of 100 MB"
    assert "memory for batches under way (prefetch 2 each) would be the limit" in advice.why


def test_workers_where_there_are_none():
    (advice,) = advised(inline_run()).values()
    assert (advice.current, advice.proposed) == ("0", "2")
    assert advice.predicted_samples_per_s == pytest.approx(32 / 0.0103)
    assert "get_worker_info" not in advice.why
    (advice,) = advised(set_to(inline_run(), kind="iterable")).values()
    assert "must divide its samples among workers" in advice.why


def test_no_workers_for_what_costs_more_to_send_than_to_make():
    quick = inline_run(read_s=0.001, decode_s=0.001, collate_s=0.001, other_s=0.0, step_s=0.005)
    assert "num_workers 1" in advised(quick)
    (advice,) = advised(seen(quick, tensors=200, batch_bytes=1600)).values()
    assert "not more workers" in advice.proposed
    assert "receiving one from a worker some 30.3 ms" in advice.why


def test_fewer_workers_where_the_cores_are_used_up():
    crowded = seen(workers_run(workers=6, cpu_share=0.3, step_s=0.001), runqueue_s=0.021)
    fewer, cheaper = advised(crowded).values()
    assert (fewer.setting, fewer.current, fewer.proposed) == ("num_workers", "6", "2")
    assert fewer.predicted_samples_per_s is None, "no gain is promised"
    assert "9.00 ms of CPU time" in fewer.why
    assert "cheaper way to make a batch" in cheaper.proposed


def test_no_more_workers_where_cores_are_full():
    (advice,) = advised(workers_run(cpu_share=1.0)).values()
    assert advice.proposed == "a cheaper way to make a batch, not more workers"
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
    assert "10 batches under way outlast one, 4 do not" in prefetch.why
    assert order.predicted_samples_per_s is None, "twelve slow batches are too few for a number"
    many = advised(slow_batches(batches=300)).values()
    assert [advice.predicted_samples_per_s for advice in many] == pytest.approx([4 / 0.01025] * 2)


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
