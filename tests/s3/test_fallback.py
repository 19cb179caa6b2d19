"""A store that a client cannot read as it is: which other settings or client take its place, and
what is said where none may."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pipeprof.errors import StorageError, UsageError
from pipeprof.storage import open_store
from pipeprof.storage.s3 import obstore_after_fork
from pipeprof.storage.s3.account import ask_region
from tests.s3.conftest import CONTENT, TRIED, Opened, needs_obstore
from tests.s3.relay import Relay


@pytest.mark.parametrize("client", ["pyarrow", "s3fs"])
def test_wrong_checksums_are_noted_and_no_longer_compared(
    client: str, relay: Relay, opened: Callable[..., Opened], pauses: list[float]
) -> None:
    """Some servers send the checksum of the whole object with each range; obstore ignores it."""
    relay.always = "checksum"
    store, item = opened(client)
    for start in (0, 50):
        assert bytes(store.read(item, [(start, 10)])[0]) == CONTENT[start : start + 10]
    assert relay.gets == 3, "asked again once, and then never"
    assert pauses == []
    assert "AWS_RESPONSE_CHECKSUM_VALIDATION=when_required" in store.notes[-1]


@needs_obstore
def test_a_store_that_answers_ranges_with_200_is_read_by_another_client(
    relay: Relay, opened: Callable[..., Opened], pauses: list[float]
) -> None:
    relay.partial = False
    store, item = opened()
    for start in (0, 50):
        assert bytes(store.read(item, [(start, 10)])[0]) == CONTENT[start : start + 10]
    assert (store.client, relay.gets, pauses) == ("s3fs", 3, [])
    assert store.notes[0] == "S3 was read by s3fs."
    assert "not read by obstore" in store.notes[1]

    chosen, item = opened("obstore")
    with pytest.raises(StorageError, match="omit --s3-client"):
        chosen.read(item, [(0, 10)])


@pytest.mark.parametrize("client", TRIED)
def test_the_requester_pays(client: str, relay: Relay, bucket: Path) -> None:
    url = f"s3://{bucket.name}"
    (bucket / "x.bin").write_bytes(b"abc")
    options = {"requester_pays": True, "s3_client": client}
    if client == "pyarrow":
        with pytest.raises(StorageError, match="omit --s3-client"):
            open_store(url, options).find(url)
        return
    store = open_store(url, options)
    store.read(store.find(url)[0], [(0, 3)])
    assert len(relay.headers) == 2
    assert {headers["x-amz-request-payer"] for headers in relay.headers} == {"requester"}


@pytest.mark.parametrize(
    ("installed", "options", "why"),
    [
        pytest.param(
            True,
            {"config_kwargs": {"inject_host_prefix": False}},
            "only s3fs supports the setting inject_host_prefix",
            marks=needs_obstore,
        ),
        (False, {}, "not installed"),
    ],
    ids=["a setting that only s3fs knows", "as on Python 3.10, for which there is no obstore"],
)
def test_s3fs_reads_what_obstore_cannot(
    installed: bool,
    options: dict[str, Any],
    why: str,
    relay: Relay,
    bucket: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not installed:
        monkeypatch.setattr(obstore_after_fork, "_load", missing_module)
    (bucket / "x.bin").write_bytes(b"abc")
    url = f"s3://{bucket.name}"
    store = open_store(url, options)
    assert [item.size for item in store.find(url)] == [3]
    assert store.client == "s3fs"
    assert why in store.notes[1]


def test_a_chosen_client_that_is_not_installed_is_an_error(
    relay: Relay, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstore_after_fork, "_load", missing_module)
    url = f"s3://{bucket.name}"
    with pytest.raises(StorageError, match="this client is not installed"):
        open_store(url, {"s3_client": "obstore"}).find(url)


def missing_module(pid: int) -> NoReturn:
    raise ModuleNotFoundError("No module named 'obstore'")


def test_missing_credentials_in_another_process_are_one_sentence(
    relay: Relay, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bucket / "x.bin").write_bytes(b"abc")
    url = f"s3://{bucket.name}/x.bin"
    store = open_store(url)
    (item,) = store.find(url)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    elsewhere = pickle.loads(pickle.dumps(store))
    for ranges in ([(0, 1)], [(0, 1), (2, 1)]):
        with pytest.raises(StorageError, match=r"x\.bin cannot be read: no credentials found"):
            elsewhere.read(item, ranges)


def test_an_unknown_client_is_refused() -> None:
    with pytest.raises(UsageError, match="'curl' is no client of S3; those are obstore, pyarrow"):
        open_store("s3://bucket", {"s3_client": "curl"})


def test_the_region_is_that_of_the_answer() -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(403 if self.path == "/denied" else 200)
            if self.path != "/silent":
                self.send_header("x-amz-bucket-region", "eu-north-1")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        here = f"http://127.0.0.1:{server.server_port}"
        told = [ask_region(bucket, here) for bucket in ("mine", "denied", "silent")]
        server.shutdown()
        thread.join()
    assert told == ["eu-north-1", "eu-north-1", None]
    assert ask_region("mine", "http://127.0.0.1:9") is None
