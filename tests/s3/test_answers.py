"""Answers that a sound server of S3 does not give: how often it is asked, and what is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pipeprof.errors import StorageError
from pipeprof.storage import open_store
from tests.s3.conftest import lead_to
from tests.s3.server import KEY, SECRET

URL = "s3://bucket/data"


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server that says the same to everybody, or hangs up when ``status`` is 0: its endpoint,
    and the method of each request."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(self.command)
            self.close_connection = True
            if status:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if self.command == "GET" else b"")

        do_GET = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def told(status: int, code: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """Why nothing can be listed, and what was asked. The server repeats our key and secret."""
    body = f"<Error><Code>{code}</Code><Message>{KEY} {SECRET}</Message></Error>".encode()
    with answering(status, body) as (endpoint, asked):
        lead_to(endpoint, monkeypatch)
        with pytest.raises(StorageError) as caught:
            open_store(URL).find(URL)
    assert not any(secret in str(caught.value) for secret in (KEY, SECRET))
    return str(caught.value).removeprefix(f"{URL} cannot be listed: "), asked


def test_a_server_that_hangs_up_gets_no_listing_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why, asked = told(0, "", monkeypatch)
    assert why.startswith("the server broke off its answer; it may be overloaded")
    assert asked == ["HEAD"]


@pytest.mark.parametrize(
    ("status", "code", "why"),
    [
        (400, "ExpiredToken", "access denied; check the credentials."),
        (403, "AccessDenied", "access denied; check the credentials."),
        (500, "InternalError", "the server failed (InternalError)."),
        (501, "NotImplemented", "the server refuses the request (NotImplemented)."),
        (400, "SomethingNew", "the server refuses the request (SomethingNew)."),
        (400, f"Key={KEY}", "the server refuses the request."),
    ],
)
def test_a_refusal_is_explained_by_its_code_and_never_by_its_text(
    status: int, code: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is one object is asked first; its answer has no body, so the listing tells more."""
    said, asked = told(status, code, monkeypatch)
    assert said == why
    assert asked == ["HEAD", "GET"]
