"""In a worker, reads through fsspec and Python's files count; in the main process, fsspec's."""

import io
import subprocess
import sys

import fsspec
import numpy
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from pipeprof.measure.patches import all_reads as module
from pipeprof.measure.patches.all_reads import prepare_reads, reads_recorded
from pipeprof.measure.patches.file_reads import holders_of_open
from pipeprof.measure.patches.replacing import restore_all
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.storage import open_store

DATA = bytes(range(250)) * 40


@pytest.fixture
def worker(monkeypatch):
    """As in a worker, for one test."""
    for owner, name in [*holders_of_open(), (numpy, "fromfile"), (module, "_users")]:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    prepare_reads()()
    yield
    restore_all()


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_our_own_storage_counts_once(scheme, worker, tmp_path):
    url = f"{scheme}://{tmp_path}/data"
    with fsspec.open(url, "wb") as file:
        file.write(DATA)
    store = open_store(url)
    [item] = store.find(url)
    with tallied(Tally()) as tally:
        store.read(item, [(0, 100), (500, 50)])
    assert (tally.bytes, tally.requests, tally.stage_changes) == (150, 2, 1)


def test_arrays_that_numpy_reads_by_descriptor(worker, tmp_path):
    array = numpy.arange(50_000)
    numpy.save(tmp_path / "array.npy", array)
    array.tofile(tmp_path / "plain")
    with tallied(Tally()) as loaded:
        assert (numpy.load(tmp_path / "array.npy") == array).all()
    with tallied(Tally()) as plain:
        assert len(numpy.fromfile(tmp_path / "plain", count=10)) == 10
    assert array.nbytes <= loaded.bytes <= array.nbytes + 2 * io.DEFAULT_BUFFER_SIZE
    assert (plain.bytes, plain.requests) == (80, 1)


def test_the_main_process_keeps_its_open():
    with reads_recorded():
        assert type(open) is type(io.open) is type(len)
        assert numpy.fromfile.__name__ == "fromfile"
        assert not hasattr(numpy.fromfile, "__wrapped__")


class Reads(Dataset):
    """Each sample: the bytes and requests that were recorded while it was made."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 4

    def __getitem__(self, index):
        with tallied(Tally()) as tally:
            with open(self.path, "rb") as file:
                file.read()
            with fsspec.open(f"file://{self.path}") as file:
                file.read()
        return tally.bytes, tally.requests


def watch_in_worker(worker):
    prepare_reads()()


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_worker_sees_both_whatever_main_does(method, tmp_path):
    (tmp_path / "data").write_bytes(DATA)
    loader = DataLoader(
        Reads(str(tmp_path / "data")),
        num_workers=1,
        multiprocessing_context=method,
        worker_init_fn=watch_in_worker,
    )
    with reads_recorded():
        seen = torch.cat([torch.stack(sample) for sample in loader], dim=1)
    assert seen.T.tolist() == [[2 * len(DATA), 2]] * 4


def test_a_library_whose_import_is_blocked_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "kvikio.cufile", None)
    with reads_recorded():
        assert sys.modules["kvikio.cufile"] is None


IMPORTED_LATER = """
import sys
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.measure.patches.all_reads import reads_recorded, prepare_reads

{watch}
assert "fsspec" not in sys.modules
import fsspec
from fsspec.implementations import http

fsspec.filesystem("memory").pipe_file("/x", bytes(100))
with tallied(Tally()) as tally:
    with fsspec.open("memory://x") as file:
        file.read(60)
    with fsspec.open("file://" + sys.argv[1]) as file:
        file.read()
assert fsspec.asyn.sync.__wrapped__ and http.HTTPFile.read.__wrapped__
assert "exec_module" not in vars(fsspec.asyn.__loader__)
print(tally.bytes, tally.requests)
"""


@pytest.mark.parametrize(
    "watch", ["prepare_reads()()", "main = reads_recorded(); main.__enter__()"]
)
def test_an_fsspec_imported_later_is_seen(watch, tmp_path):
    (tmp_path / "data").write_bytes(DATA)
    script = IMPORTED_LATER.format(watch=watch)
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "data"], capture_output=True, text=True
    )
    assert (done.stderr, done.stdout.split()) == ("", [str(60 + len(DATA)), "2"])
