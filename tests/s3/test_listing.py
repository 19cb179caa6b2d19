"""Listings are read in pages, and continue where one failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pipeprof.storage import open_store, retry
from pipeprof.storage.progress import Listing, listing_watched
from pipeprof.storage.s3 import store as s3_store
from tests.s3.conftest import TRIED, lead_to

PAGE = 1_000


class Bucket:
    """Of so many objects, listed as S3 does it: by pages, each with a token for the next."""

    def __init__(self) -> None:
        self.objects = 100_000
        self.asked: list[dict[str, str]] = []
        self.failing: set[int] = set()
        """Requests that are answered with 503, by their number."""

    def page(self, query: dict[str, str]) -> bytes | None:
        self.asked.append(query)
        if len(self.asked) - 1 in self.failing:
            return None
        after = query.get("start-after", "")
        first = int(after.rpartition("-")[2].partition(".")[0]) + 1 if after else 0
        first = int(query.get("continuation-token", first))
        last = min(first + PAGE, self.objects)
        entries = "".join(
            f"<Contents><Key>data/part-{number:06}.csv</Key><Size>{number}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for number in range(first, last)
        )
        more = last < self.objects
        token = f"<NextContinuationToken>{last}</NextContinuationToken>" if more else ""
        return (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}"
            "</ListBucketResult>"
        ).encode()


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    bucket = Bucket()

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
            found = bucket.page(query) if "list-type" in query else b""
            status = 404 if self.command == "HEAD" else 200 if found is not None else 503
            self.send_response(status)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            self.wfile.write(found or b"")

        do_GET = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads, server.block_on_close = True, False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        lead_to(f"http://127.0.0.1:{server.server_port}", monkeypatch)
        yield bucket
        server.shutdown()
        thread.join()


def test_100_000_objects_are_listed_in_pages_with_progress(
    listed: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    clock = iter(range(10_000))
    monkeypatch.setattr(s3_store, "Listing", lambda url: Listing(url, lambda: float(next(clock))))
    with listing_watched(lambda url, count: told.append(count)):
        items = open_store("s3://bucket/data").find("s3://bucket/data")
    assert [item.size for item in items] == list(range(100_000))
    assert items[-1].url == "s3://bucket/data/part-099999.csv"
    assert len(listed.asked) == 100
    assert told == list(range(1_000, 101_000, 1_000))


@pytest.mark.parametrize("client", TRIED)
def test_a_listing_continues_where_it_failed(
    client: str, listed: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    listed.objects, listed.failing = 4_500, {2, 4}
    store = open_store("s3://bucket/data", {"s3_client": client})
    assert [item.size for item in store.find("s3://bucket/data/")] == list(range(4_500))
    if client != "pyarrow":  # which begins anew
        assert len(listed.asked) == 5 + 2
