"""A server of S3 with faults: it stands before a real one, and spoils answers as it is told."""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

Fault = Literal["slow down", "fail", "reset", "break off", "hang", "short", "checksum", "deny"]
"""What becomes of one answer with an object's bytes: 503, 500, half of it and the connection's
reset or end, nothing at all, one byte less than asked for, a checksum of something else, 403."""

_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}
_ERRORS = {"slow down": (503, "SlowDown"), "fail": (500, "InternalError"),
           "deny": (403, "AccessDenied")}  # fmt: skip


@dataclass
class Relay:
    """The requests that the relay received, and the faults that it is to cause."""

    endpoint: str
    bucket: str = ""
    """Whose requests alone are noted and spoilt: others are of a test that is over, and late."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method, and path with query, of each request."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of each request, their names in lower case."""
    faults: deque[Fault] = field(default_factory=deque)
    """For the next answers with an object's bytes; then all is well."""
    always: Fault | None = None
    """The fault of every answer with an object's bytes."""
    partial: bool = True
    """Answer a range with 206, as S3 does and the server behind does not."""
    released: threading.Event = field(default_factory=threading.Event)
    """An event that ends the answers that hang."""

    def forget(self) -> None:
        """Reset everything, and end the answers that hang."""
        self.bucket = ""
        self.asked, self.headers = [], []
        self.faults, self.always, self.partial = deque(), None, True
        self.released.set()
        self.released = threading.Event()

    def next_fault(self, for_bytes: bool) -> Fault | None:
        """Of an answer; the faults in line wait for one with an object's bytes."""
        if not for_bytes:
            return None
        return self.always or (self.faults.popleft() if self.faults else None)

    @property
    def gets(self) -> int:
        """Requests for an object's bytes."""
        return sum(method == "GET" and "?" not in path for method, path in self.asked)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self._behind = HTTPConnection(self.server.behind, timeout=30)

    def finish(self) -> None:
        self._behind.close()
        super().finish()

    def answer(self) -> None:
        relay = self.server.relay
        ours = relay.bucket in self.path
        if ours:
            relay.asked.append((self.command, self.path))
            relay.headers.append({name.lower(): value for name, value in self.headers.items()})
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        for_bytes = ours and self.command == "GET" and "?" not in self.path
        fault = relay.next_fault(for_bytes)
        if fault in _ERRORS:
            return self._refuse(*_ERRORS[fault])
        self._behind.request(self.command, self.path, body or None, dict(self.headers.items()))
        found = self._behind.getresponse()
        data = found.read()
        if fault == "hang":
            relay.released.wait()
            self.close_connection = True
            return None
        data = data[:-1] if fault == "short" else data
        self._head(found, data, fault)
        return self._body(data, fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

    def _refuse(self, status: int, code: str) -> None:
        said = f"<Error><Code>{code}</Code><Message>{self.headers}</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _head(self, found: HTTPResponse, data: bytes, fault: Fault | None) -> None:
        ranged = found.status == 200 and found.headers["Content-Range"]
        self.send_response(206 if ranged and self.server.relay.partial else found.status)
        for name, value in found.headers.items():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        if fault == "checksum":
            self.send_header("x-amz-checksum-crc32", "AAAAAA==")
        length = found.headers["Content-Length"] if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()

    def _body(self, data: bytes, fault: Fault | None) -> None:
        if fault not in ("reset", "break off"):
            self.wfile.write(data)
            return
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        if fault == "reset":
            now = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, behind: str, certificate: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self.relay = Relay(f"{'https' if certificate else 'http'}://127.0.0.1:{self.server_port}")
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: Any, address: Any) -> None:
        """Ignore a client that has closed its connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)

    def shutdown_request(self, request: Any) -> None:
        request.close()  # without the shutdown that would end a reset mildly


@contextmanager
def relaying(server: str, certificate: Path | None = None) -> Iterator[Relay]:
    """Before ``server``, an endpoint. ``certificate``: encrypted, with this and its key."""
    with _Listener(urlsplit(server).netloc, certificate) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield listener.relay
        finally:
            listener.relay.released.set()
            listener.shutdown()
            thread.join()
