"""Reads through fsspec over HTTP count the requests that the server receives."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fsspec.implementations.http import HTTPFileSystem

from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.model import Stage

DATA = bytes(range(250)) * 40


class Ranges(BaseHTTPRequestHandler):
    """Serves DATA, whole or in part."""

    def log_message(self, *message):
        pass

    def do_HEAD(self):
        self.respond(200, DATA, send=False)

    def do_GET(self):
        self.server.requests += 1
        if "absent" in self.path:
            return self.respond(404, b"")
        if "Range" not in self.headers:
            return self.respond(200, DATA)
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        return self.respond(206, DATA[first : last + 1])

    def respond(self, status, body, send=True):
        self.send_response(status)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if send:
            self.wfile.write(body)


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    server.requests = 0
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def http():
    """Made before anybody watches: its methods are its own, not its class's."""
    fs = HTTPFileSystem(skip_instance_cache=True)
    yield fs
    if fs._session is not None:
        fs.close_session(fs.loop, fs._session)


def test_requests_are_those_that_the_server_saw(server, http, tmp_path):
    url = f"http://127.0.0.1:{server.server_port}/data"

    def in_blocks():
        with http.open(url, block_size=1000, cache_type="readahead") as file:
            return b"".join(iter(lambda: file.read(100), b""))

    def absent():
        with pytest.raises(FileNotFoundError):
            http.cat_file(url + "absent")

    for read, length in (
        (lambda: http.cat_file(url), len(DATA)),
        (lambda: http.cat_file(url, 10, 20), 10),
        (lambda: http.cat([url, url + "2"]), 2 * len(DATA)),
        (lambda: http.cat_ranges([url] * 3, [0, 10, 20], [5, 15, 25]), 15),
        (lambda: http.get_file(url, str(tmp_path / "copy")), len(DATA)),
        (lambda: http.open(url).read(), len(DATA)),
        (lambda: http.open(url, block_size=100).read(), len(DATA)),
        (in_blocks, len(DATA)),
        (absent, 0),
    ):
        server.requests, start = 0, time.perf_counter()
        with reads_recorded(), tallied(Tally()) as tally:
            read()
        assert (tally.bytes, tally.requests) == (length, server.requests)
        assert 0 < tally.seconds[Stage.READ] <= time.perf_counter() - start
