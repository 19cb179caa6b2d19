"""A store that throttles, breaks off, hangs or sends too little: how often it is asked, how long is
waited, what is counted, and what is said in the end."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

import pytest

from pipeprof.errors import StorageError, UsageError
from pipeprof.storage import ObjectInfo, Store, open_store, retry
from pipeprof.storage.s3 import obstore_after_fork
from pipeprof.storage.s3 import store as s3_store
from pipeprof.storage.s3.account import ask_region
from tests.s3.conftest import TRIED, needs_obstore
from tests.s3.relay import Fault, Relay
from tests.s3.server import KEY, SECRET

CONTENT = bytes(range(256)) * 400

Opened = tuple[Store, ObjectInfo]


@pytest.fixture(params=TRIED)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(bucket: Path, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Opened]:
    """An object found by a client, which has the patience that users have."""
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    (bucket / "x.bin").write_bytes(CONTENT)
    url = f"s3://{bucket.name}/x.bin"

    def open_with(client: str | None = None, **options: Any) -> Opened:
        given = {"config_kwargs": options}
        store = open_store(url, {"s3_client": client, **given} if client else given)
        (item,) = store.find(url)
        relay.asked.clear()
        return store, item

    return open_with


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """That would have been made before another attempt."""
    made: list[float] = []
    monkeypatch.setattr(retry, "sleep", made.append)
    return made


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the profile is told of each request."""
    told: list[dict[str, Any]] = []

    def note(start_s: float, first_byte_s: float, end_s: float, size: int, **more: Any) -> None:
        told.append({"first_byte_s": first_byte_s - start_s, "s": end_s - start_s,
                     "size": size, **more})  # fmt: skip

    monkeypatch.setattr(s3_store, "note_request", note)
    return told


UNSEEN = {("pyarrow", "short")}
"""pyarrow takes what is in its memory for the bytes that did not come."""


def by_itself(client: str, fault: Fault) -> bool:
    """Whether the client asks again without us: obstore's does, where a connection that it used
    before is reset so early that nothing of the answer has been read."""
    return (client, fault) == ("obstore", "reset")


@pytest.mark.parametrize("fault", ["slow down", "fail", "reset", "break off", "short"])
def test_what_passes_is_asked_again_and_counted(
    fault: Fault,
    client: str,
    relay: Relay,
    opened: Callable[..., Opened],
    pauses: list[float],
    noted: list[dict[str, Any]],
) -> None:
    if (client, fault) in UNSEEN:
        return
    store, item = opened(client)
    relay.faults.extend([fault] * 3)
    (data,) = store.read(item, [(1_000, 50_000)])
    assert bytes(data) == CONTENT[1_000:51_000]
    assert relay.gets == 4
    (told,) = noted
    assert (told["size"], told["throttled"]) == (50_000, 3 if fault == "slow down" else 0)
    assert told["retries"] == len(pauses)
    assert len(pauses) == 3 or (by_itself(client, fault) and len(pauses) < 3)
    assert not told["failed"]
    assert math.isnan(told["first_byte_s"]) == (client == "pyarrow")
    for pause, longest in zip(pauses, (0.1, 0.2, 0.4), strict=False):
        assert longest / 2 <= pause <= longest


@pytest.mark.parametrize(
    ("fault", "attempts", "why"),
    [
        ("slow down", 5, "the server asks to slow down; read with fewer workers."),
        ("fail", 5, "the server failed"),
        ("reset", 5, "the server broke off its answer"),
        ("short", 5, "it was cut short or replaced"),
        ("deny", 1, "access denied; check the credentials."),
    ],
)
def test_what_does_not_pass_is_given_up_with_one_sentence(
    fault: Fault,
    attempts: int,
    why: str,
    client: str,
    relay: Relay,
    opened: Callable[..., Opened],
    pauses: list[float],
    noted: list[dict[str, Any]],
) -> None:
    if (client, fault) in UNSEEN:
        return
    store, item = opened(client)
    relay.always = fault
    with pytest.raises(StorageError) as caught:
        store.read(item, [(0, 50_000)])
    assert why in str(caught.value)
    assert item.url in str(caught.value)
    assert not any(secret in str(caught.value) for secret in (KEY, SECRET))
    assert relay.gets == attempts or (by_itself(client, fault) and relay.gets > attempts)
    (told,) = noted
    assert (told["size"], told["retries"], told["failed"]) == (0, attempts - 1, True)


def test_a_server_that_hangs_is_left_after_the_timeout_and_asked_again(
    client: str, relay: Relay, opened: Callable[..., Opened], pauses: list[float]
) -> None:
    """Each try is given a second; a busy machine may need several."""
    store, item = opened(client, read_timeout=1)
    relay.faults.append("hang")
    start = perf_counter()
    assert bytes(store.read(item, [(0, 10)])[0]) == CONTENT[:10]
    assert 0.9 < perf_counter() - start < 30, "by itself each client waits for a minute or so"
    assert relay.gets == 1 + len(pauses) >= 2


def test_the_user_says_how_often(
    client: str, relay: Relay, opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch,
    pauses: list[float],
) -> None:  # fmt: skip
    """As botocore reads it: from the environment, or from the options."""
    relay.always = "slow down"
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    for more, attempts in (({}, 3), ({"retries": {"max_attempts": 1}}, 2)):
        store, item = opened(client, **more)
        with pytest.raises(StorageError):
            store.read(item, [(0, 10)])
        assert relay.gets == attempts


def test_no_attempt_begins_after_the_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeprof.storage.errors import ErrorKind, Failure

    clock = [0.0]
    monkeypatch.setattr(retry, "monotonic", lambda: clock[0])
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)

    def hang() -> None:
        clock[0] += 15.0
        raise Failure(ErrorKind.TIMEOUT)

    tries = retry.Tries()
    with pytest.raises(Failure):
        retry.retry(hang, retry.RetryPolicy(attempts=100, seconds=40.0), tries)
    assert tries.retries == 2


def test_one_range_of_many_fails_the_read(
    client: str, relay: Relay, opened: Callable[..., Opened]
) -> None:
    store, item = opened(client)
    relay.faults.extend(["deny"])
    with pytest.raises(StorageError, match="access denied"):
        store.read(item, [(start, 5_000) for start in range(0, 100_000, 5_000)])


def test_pyarrow_loses_the_reason_when_little_was_asked_for(
    relay: Relay, opened: Callable[..., Opened], pauses: list[float]
) -> None:
    """It writes the server's words to where the bytes were to go."""
    store, item = opened("pyarrow")
    relay.always = "deny"
    with pytest.raises(StorageError, match="another --s3-client shows the reason"):
        store.read(item, [(0, 10)])


@pytest.mark.parametrize("client", ["pyarrow", "s3fs"])
def test_wrong_checksums_are_told_and_no_longer_compared(
    client: str, relay: Relay, opened: Callable[..., Opened], pauses: list[float]
) -> None:
    """Some servers send the whole object's with each range. obstore compares none."""
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


def test_a_client_that_is_not_installed_is_told_to_who_chose_it(
    relay: Relay, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstore_after_fork, "_load", missing_module)
    url = f"s3://{bucket.name}"
    with pytest.raises(StorageError, match="this client is not installed"):
        open_store(url, {"s3_client": "obstore"}).find(url)


def missing_module(pid: int) -> NoReturn:
    raise ModuleNotFoundError("No module named 'obstore'")


def test_credentials_that_went_are_told_in_a_sentence(
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


def test_the_region_is_what_the_store_tells() -> None:
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
