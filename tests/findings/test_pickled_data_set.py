"""Workers that are spawned, or started by forkserver, each with a copy of the data set."""

from __future__ import annotations

import re
from dataclasses import replace
from multiprocessing import reduction

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.analyze.assemble import assemble
from pipeprof.model import Recording
from tests.findings.known import codes, text_of
from tests.findings.pickled import Array, Mapped, Objects, Shared

CODE = "pickled-data-set"


def recorded(dataset, method: str, epochs: int = 1, **options) -> Recording:
    options = {"num_workers": 2, "multiprocessing_context": method} | options
    loader = pipeprof.wrap(DataLoader(dataset, 4, **options), whole=True)
    for _ in range(epochs):
        assert len(list(loader)) == 10
    if loader._iterator is not None:
        loader._iterator._shutdown_workers()
    return loader.recording()


@pytest.fixture(scope="module")
def of_an_array() -> Recording:
    return recorded(Array(), "spawn")


def pickled(dataset) -> int:
    return len(reduction.ForkingPickler.dumps(dataset))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_objects_are_copied_to_each_worker(method):
    dataset = Objects()
    recording = recorded(dataset, method)
    starts = recording.pickled_starts
    assert starts.starts == 1
    assert 0 < starts.copy_bytes - pickled(dataset) < 20_000, "the rest is what torch adds"
    assert 0 < starts.pickle_s < starts.start_s < recording.first_batch_s
    text = text_of(assemble(recording), CODE)
    assert f"Each of 2 workers ({method}) was sent a pickled copy of 12.6 MB, 25.2 MB" in text


@pytest.mark.timed
def test_data_in_a_file_starts_sooner_by_about_what_was_promised(tmp_path):
    before = recorded(Objects(), "spawn")
    after = recorded(Mapped(tmp_path / "rows.npy"), "spawn")
    promised_s = seconds(text_of(assemble(before), CODE))
    assert after.pickled_starts.copy_bytes < 20_000
    assert CODE not in codes(assemble(after))
    assert 0.3 * promised_s < before.first_batch_s - after.first_batch_s < 3 * promised_s


def seconds(text: str) -> float:
    number, unit = re.search(r"about ([\d.]+) (m?s) sooner", text).groups()
    return float(number) / (1000 if unit == "ms" else 1)


def test_an_array_is_copied_and_a_tensor_is_not(of_an_array):
    assert of_an_array.pickled_starts.copy_bytes > 3_600_000
    shared = recorded(Shared(), "spawn", num_workers=1)
    assert shared.pickled_starts.copy_bytes < 20_000
    assert CODE not in codes(assemble(shared))


def test_workers_that_are_forked_get_no_copy():
    assert recorded(Objects(), "fork").pickled_starts is None


def test_it_is_paid_in_each_epoch_unless_workers_stay():
    again, once = (recorded(Array(), "spawn", 2, persistent_workers=stay) for stay in (False, True))
    assert (again.pickled_starts.starts, once.pickled_starts.starts) == (2, 1)
    text = text_of(assemble(again), CODE)
    assert "There was one in each of 2 epochs" in text
    assert "persistent_workers=True starts workers once" in text
    assert "persistent_workers" not in text_of(assemble(once), CODE)


def test_it_must_matter_to_the_run_and_is_not_said_twice(of_an_array):
    slow = replace(of_an_array, first_batch_s=of_an_array.first_batch_s + 5)
    assert codes(assemble(slow)) & {CODE, "slow-start"} == {CODE}
    day = replace(slow, main=replace(slow.main, wall_s=86_400.0))
    assert not codes(assemble(day)) & {CODE, "slow-start"}


@pytest.mark.filterwarnings("ignore:Got pickle error")
def test_what_cannot_be_pickled_raises_what_it_does_without_us():
    dataset = Array()
    dataset.unknown = lambda: None
    errors = []
    for loader in (DataLoader(dataset, 4, num_workers=1, multiprocessing_context="spawn"),) * 2:
        wrapped = pipeprof.wrap(loader) if errors else loader
        with pytest.raises((AttributeError, TypeError, reduction.pickle.PicklingError)) as error:
            iter(wrapped)
        errors.append((type(error.value), str(error.value)))
    assert errors[0] == errors[1]
