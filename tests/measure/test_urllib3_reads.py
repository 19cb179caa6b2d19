"""Bytes that come through urllib3 count as stage `read`, whatever library asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests
import urllib3

from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.requests import begin_noting, end_noting, pending_notes
from pipeprof.measure.stage_timer import Tally, tallied

DATA = bytes(range(250)) * 400


class Answers(BaseHTTPRequestHandler):
    """``/chunked`` has no length, ``/absent`` is not there, and ``/moved`` is elsewhere."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *message: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(200, str(len(DATA)))

    def do_POST(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.answer(302, "0", Location="/data")
        elif self.path == "/absent":
            self.answer(404, "0")
        elif self.path == "/slow-down":
            self.answer(503, "0")
        elif self.path == "/chunked":
            self.answer(200, "", **{"Transfer-Encoding": "chunked"})
            for start in range(0, len(DATA), 40_000):
                part = DATA[start : start + 40_000]
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.answer(200, str(len(DATA)))
            self.wfile.write(DATA)

    def answer(self, status: int, length: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length:
            self.send_header("Content-Length", length)
        self.end_headers()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def noted(read: Callable[[], Any]) -> tuple[Tally, list[Any]]:
    """What the batch and the notes of requests say of ``read``, which returns `DATA`."""
    begin_noting()
    try:
        with reads_recorded(), tallied(Tally(note_requests=True)) as tally:
            assert read() == DATA
        return tally, [*pending_notes]
    finally:
        end_noting()


def in_pieces(answer: Any) -> bytes:
    pieces = []
    while piece := answer.read(7000):
        pieces.append(piece)
    return b"".join(pieces)


READS: dict[str, Callable[[str], Any]] = {
    "urllib3 at once": lambda url: urllib3.PoolManager().request("GET", url).data,
    "urllib3 in pieces": lambda url: in_pieces(
        urllib3.PoolManager().request("GET", url, preload_content=False)
    ),
    "urllib3 as a stream": lambda url: b"".join(
        urllib3.PoolManager().request("GET", url, preload_content=False).stream(9000)
    ),
    "requests": lambda url: requests.get(url).content,
    "requests as a stream": lambda url: b"".join(
        requests.get(url, stream=True).iter_content(10_000)
    ),
}


@pytest.mark.parametrize("path", ["data", "chunked", "moved"])
@pytest.mark.parametrize("name", READS)
def test_an_object_is_one_request_until_its_last_byte(name: str, path: str, url: str) -> None:
    tally, notes = noted(lambda: READS[name](f"{url}/{path}"))
    moved = path == "moved"  # which takes a request of its own
    assert (tally.bytes, tally.requests) == (len(DATA), 1 + moved)
    assert tally.seconds["read"] > 0
    assert [note[3] for note in notes] == [0] * moved + [len(DATA)]
    start_s, first_s, end_s, *_, failed = notes[-1]
    assert start_s < first_s <= end_s
    assert not failed


@pytest.mark.parametrize(("path", "throttled"), [("absent", 0), ("slow-down", 1)])
def test_what_the_server_refuses_failed(path: str, throttled: int, url: str) -> None:
    def read() -> bytes:
        with pytest.raises(requests.HTTPError):
            requests.get(f"{url}/{path}").raise_for_status()
        return DATA

    tally, notes = noted(read)
    assert (tally.bytes, tally.requests) == (0, 1)
    assert [note[-2:] for note in notes] == [(throttled, True)]


def test_a_server_that_is_not_there_failed() -> None:
    def read() -> bytes:
        with pytest.raises(urllib3.exceptions.MaxRetryError):
            urllib3.PoolManager().request("GET", "http://127.0.0.1:1/", retries=0)
        return DATA

    assert [note[-1] for note in noted(read)[1]] == [True]


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_other_methods_fetch_no_data(method: str, url: str) -> None:
    def send() -> bytes:
        requests.request(method, f"{url}/data")
        return DATA

    tally, notes = noted(send)
    assert (tally.requests, notes) == (0, [])


def test_outside_of_a_batch_nothing_is_recorded_and_the_library_is_as_before(url: str) -> None:
    plain = vars(urllib3.HTTPConnectionPool)["urlopen"], vars(urllib3.HTTPResponse)["read"]
    begin_noting()
    with reads_recorded():
        assert requests.get(f"{url}/data").content == DATA
    assert not pending_notes
    end_noting()
    assert plain == (
        vars(urllib3.HTTPConnectionPool)["urlopen"],
        vars(urllib3.HTTPResponse)["read"],
    )
