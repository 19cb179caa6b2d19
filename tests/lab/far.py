"""S3 on a host behind a shaped link."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter, sleep
from urllib.parse import urlsplit

import botocore.session
import numpy as np
import pytest
from botocore.config import Config

from tests.lab.net import Link, shaped_link
from tests.s3.conftest import lead_to
from tests.s3.server import KEY, SECRET, Server, serving

BUCKET = "far"
NO_ETAG = ("--etag-hash", "")
"""By default the server would compute an object's MD5 for every range that is asked of it."""


@dataclass(frozen=True)
class Far:
    link: Link
    server: Server

    @property
    def bucket(self) -> Path:
        return self.server.root / BUCKET

    def plain_get_s(self, name: str, length: int, pause_s: float = 0, times: int = 60) -> float:
        """The median time of a GET of the first ``length`` bytes over one connection, with nothing
        that anybody would call a client. ``pause_s``: between two of them."""
        client = botocore.session.get_session().create_client(
            "s3", endpoint_url=self.server.endpoint, region_name="us-east-1",
            aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            config=Config(signature_version="s3v4"),
        )  # fmt: skip
        signed = client.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": name})
        client.close()
        place = urlsplit(signed)
        connection = HTTPConnection(place.netloc)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        took = []
        for _ in range(times):
            start = perf_counter()
            headers = {"Range": f"bytes=0-{length - 1}"}
            connection.request("GET", f"{place.path}?{place.query}", headers=headers)
            assert len(connection.getresponse().read()) == length
            took.append(perf_counter() - start)
            sleep(pause_s)
        connection.close()
        return float(np.median(took))


@contextmanager
def far_store(
    mbit_per_s: float, round_trip_ms: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Far]:
    """The environment leads to it. Serves the buckets in ``folder``/root."""
    (folder / "root" / BUCKET).mkdir(parents=True, exist_ok=True)
    with (
        shaped_link(mbit_per_s, round_trip_ms) as link,
        serving(folder / "root", folder / "log", link.address, link.inside, NO_ETAG) as server,
    ):
        lead_to(server.endpoint, monkeypatch)
        yield Far(link, server)
