"""A store that throttles, breaks off, hangs or sends too little: how often it is asked, how long is
waited, what is counted, and what is said in the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest

from pipeprof.errors import StorageError
from pipeprof.storage import retry
from pipeprof.storage.s3 import store as s3_store
from tests.s3.conftest import CONTENT, TRIED, Opened
from tests.s3.relay import Fault, Relay
from tests.s3.server import KEY, SECRET


@pytest.fixture(params=TRIED)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The notes that the profile gets of each request."""
    told: list[dict[str, Any]] = []

    def note(start_s: float, first_byte_s: float, end_s: float, size: int, **more: Any) -> None:
        told.append({"first_byte_s": first_byte_s - start_s, "s": end_s - start_s,
                     "size": size, **more})  # fmt: skip

    monkeypatch.setattr(s3_store, "note_request", note)
    return told


UNSEEN = {("pyarrow", "short")}
"""Faults that a client does not notice: pyarrow returns memory for bytes that did not come."""


def by_itself(client: str, fault: Fault) -> bool:
    """Whether the client asks again without us: obstore's does, where a connection that it used
    before is reset so early that nothing of the answer has been read."""
    return (client, fault) == ("obstore", "reset")


@pytest.mark.parametrize("fault", ["slow down", "fail", "reset", "break off", "short"])
def test_transient_errors_are_retried_and_counted(
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
def test_lasting_errors_end_with_one_sentence(
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


def test_a_request_that_hangs_is_repeated_after_the_timeout(
    client: str, relay: Relay, opened: Callable[..., Opened], pauses: list[float]
) -> None:
    """Each try is given a second; a busy machine may need several."""
    store, item = opened(client, read_timeout=1)
    relay.faults.append("hang")
    start = perf_counter()
    assert bytes(store.read(item, [(0, 10)])[0]) == CONTENT[:10]
    assert 0.9 < perf_counter() - start < 30, "by itself each client waits for a minute or so"
    assert relay.gets == 1 + len(pauses) >= 2


def test_the_user_sets_the_number_of_attempts(
    client: str, relay: Relay, opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch,
    pauses: list[float],
) -> None:  # fmt: skip
    """The number is read from the environment or the options, as botocore reads it."""
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


def test_pyarrow_loses_the_reason_of_a_small_request(
    relay: Relay, opened: Callable[..., Opened], pauses: list[float]
) -> None:
    """pyarrow writes the server's words into the buffer for the bytes."""
    store, item = opened("pyarrow")
    relay.always = "deny"
    with pytest.raises(StorageError, match="another --s3-client shows the reason"):
        store.read(item, [(0, 10)])
