"""Listing and reading: the same behaviour of local files and of an fsspec file system."""

import os
import pickle
import resource
import uuid

import fsspec
import pytest

from pipeprof.errors import NothingFound, StorageError, UsageError
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.model import Stage
from pipeprof.storage import open_store
from pipeprof.storage.errors import classify, storage_error
from pipeprof.storage.local import LocalStore
from tests.support.leaks import descriptors


class Place:
    """A folder to fill, local or remote."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.fs, self.path = fsspec.core.url_to_fs(root)

    def put(self, name: str, data: bytes) -> str:
        path = f"{self.path}/{name}"
        self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.fs.pipe_file(path, data)
        return f"{self.root}/{name}"


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    if request.param == "local":
        return Place(str(tmp_path))
    return Place(f"memory://{uuid.uuid4().hex}")


def names(store, url):
    return [item.url.rpartition("/")[2] for item in store.find(url)]


def test_a_folder_is_all_its_data_files_sorted(place):
    for name in ("b.csv", "a.csv", "deep/er/c.csv", "_SUCCESS", ".a.csv.crc", "_tmp/d.csv"):
        place.put(name, b"12345")
    store = open_store(place.root)
    items = store.find(place.root)
    root = place.root.rpartition("/")[2]
    assert [item.url.partition(f"{root}/")[2] for item in items] == [
        "a.csv",
        "b.csv",
        "deep/er/c.csv",
    ]
    assert {item.size for item in items} == {5}
    assert [item.url for item in store.find(place.root + "/")] == [item.url for item in items]


def test_one_file_is_itself_whatever_its_name(place):
    url = place.put("_hidden.csv", b"x")
    assert names(open_store(url), url) == ["_hidden.csv"]


def test_a_glob_is_what_it_matches(place):
    for name in ("part-1.csv", "part-2.csv", "other.csv"):
        place.put(name, b"x")
    store = open_store(place.root)
    assert names(store, place.root + "/part-*.csv") == ["part-1.csv", "part-2.csv"]


def test_a_missing_object_is_named(place):
    for name in ("missing", "none-*.csv"):
        url = f"{place.root}/{name}"
        with pytest.raises(NothingFound, match=r"missing|none-\*\.csv"):
            open_store(url).find(url)


def test_a_folder_without_data_says_so(place):
    place.put("_SUCCESS", b"")
    with pytest.raises(NothingFound, match="data"):
        open_store(place.root).find(place.root)


def test_ranges_are_read_and_recorded_as_one_read(place):
    url = place.put("x.bin", bytes(range(100)))
    store = open_store(url)
    (item,) = store.find(url)
    with tallied(Tally()) as tally:
        first, second = store.read(item, [(10, 5), (90, 10)])
    assert (bytes(first), bytes(second)) == (bytes(range(10, 15)), bytes(range(90, 100)))
    assert (tally.charges, tally.bytes, tally.requests) == (1, 15, 2)
    assert list(tally.seconds) == [Stage.READ]
    assert tally.seconds[Stage.READ] > 0


def test_a_file_that_shrank_since_it_was_listed_is_noticed(place):
    url = place.put("x.bin", bytes(100))
    store = open_store(url)
    (item,) = store.find(url)
    place.put("x.bin", bytes(40))
    with pytest.raises(StorageError, match="cut short or replaced"):
        store.read(item, [(30, 20)])


def test_a_file_that_vanished_is_noticed(place):
    url = place.put("x.bin", bytes(100))
    store = open_store(url)
    (item,) = store.find(url)
    place.fs.rm_file(item.path)
    with pytest.raises(StorageError, match=r"x\.bin cannot be read: (No|no) such"):
        store.read(item, [(0, 1)])


def test_a_store_travels_to_other_processes(place):
    url = place.put("x.bin", b"abc")
    store = open_store(url)
    (item,) = store.find(url)
    store.read(item, [(0, 1)])
    copy = pickle.loads(pickle.dumps(store))
    assert bytes(copy.read(item, [(1, 2)])[0]) == b"bc"


def test_descriptors_are_bounded_and_closed(tmp_path):
    items = []
    store = LocalStore()
    for number in range(100):
        (tmp_path / f"{number}").write_bytes(b"x")
        items += store.find(str(tmp_path / f"{number}"))
    before = descriptors()
    for item in items:
        store.read(item, [(0, 1)])
    assert 0 < len(descriptors() - before) <= 64
    store.close()
    assert not descriptors() - before


def test_running_out_of_descriptors_is_a_clear_error(tmp_path):
    """In a process of its own: the limit would hit the threads of other tests, too."""
    (tmp_path / "x").write_bytes(b"x")
    store = LocalStore()
    (item,) = store.find(str(tmp_path / "x"))
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        try:
            store.read(item, [(0, 1)])
        except StorageError as error:
            os._exit(0 if "Too many open files" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_unknown_scheme_is_a_usage_error_without_the_secret():
    with pytest.raises(UsageError) as caught:
        open_store("gopher://me:hunter2@host/x?token=abc")
    assert "gopher" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_errors_of_clients_are_reported_without_their_text():
    """A client's own text may quote the request, signature and all."""

    class ClientError(Exception):
        pass

    class NoCredentialsError(Exception):
        pass

    secret = "AWSSecret hunter2"
    for error, words in (
        (ClientError(secret), "ClientError"),
        (NoCredentialsError(secret), "no credentials found"),
        (PermissionError(secret), "access denied"),
        (FileNotFoundError(secret), "no such object"),
        (ConnectionRefusedError(111, secret), "Connection refused"),
    ):
        message = str(storage_error(classify(error), "s3://bucket/x", "read"))
        assert words in message
        assert "hunter2" not in message
        assert "s3://bucket/x" in message
