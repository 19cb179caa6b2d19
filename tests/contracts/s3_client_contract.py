"""What every client of S3 must do, against a real server."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import pytest

from pipeprof.errors import NothingFound, StorageError
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.model import Stage
from pipeprof.storage import ObjectInfo, Store, open_store
from tests.s3.conftest import lead_to
from tests.s3.relay import Relay, relaying
from tests.s3.server import KEY, SECRET, Server
from tests.support.wait import comes

ODD = ("a b.csv", "ä#x.csv", "p%41.csv", "x=1+2&3.csv", "s;c:d@e.csv", "~[1].csv")
"""Names that must be quoted in a URL, and not twice."""


class S3ClientContract:
    """Tests of one client; inherit them and set ``name``. The fixture ``relay`` acts as S3."""

    name: str

    def store(self, url: str) -> Store:
        return open_store(url, {"s3_client": self.name})

    def only(self, store: Store, url: str) -> ObjectInfo:
        (item,) = store.find(url)
        return item

    def test_what_is_found(self, relay: Relay, bucket: Path) -> None:
        url = f"s3://{bucket.name}/data"
        for name in ("b.csv", "a.csv", "deep/er/c.csv", "_SUCCESS", "_tmp/d.csv", ".a.crc"):
            (bucket / "data" / name).parent.mkdir(parents=True, exist_ok=True)
            (bucket / "data" / name).write_bytes(name.encode())
        (bucket / "data2").mkdir()
        (bucket / "data2" / "no.csv").write_bytes(b"1")
        store = self.store(url)
        found = {item.url.removeprefix(f"{url}/"): item.size for item in store.find(url)}
        assert found == {"a.csv": 5, "b.csv": 5, "deep/er/c.csv": 13}
        assert store.find(f"{url}/") == store.find(url)
        assert [i.url for i in store.find(f"{url}/*.csv")] == [f"{url}/a.csv", f"{url}/b.csv"]
        assert [i.url for i in store.find(f"{url}/**/c.csv")] == [f"{url}/deep/er/c.csv"]
        assert self.only(store, f"{url}/_SUCCESS").size == 8

    def test_odd_names_are_found_and_read(self, relay: Relay, bucket: Path) -> None:
        for name in ODD:
            (bucket / name).write_bytes(name.encode())
        store = self.store(f"s3://{bucket.name}")
        items = store.find(f"s3://{bucket.name}")
        assert sorted(item.path.partition("/")[2] for item in items) == sorted(ODD)
        for item in items:
            (data,) = store.read(item, [(0, item.size)])
            assert bytes(data).decode() == item.path.partition("/")[2]

    def test_ranges_are_exact_and_asked_for_once_each(self, relay: Relay, bucket: Path) -> None:
        content = os.urandom(100_000)
        (bucket / "x.bin").write_bytes(content)
        store = self.store(f"s3://{bucket.name}")
        item = self.only(store, f"s3://{bucket.name}/x.bin")
        ranges = [(start, 1 + start % 977) for start in range(0, 90_000, 3_001)]
        with tallied(Tally()) as tally:
            found = store.read(item, [*ranges, (99_999, 1), (5, 0)])
        expected = [content[start : start + length] for start, length in ranges]
        assert [bytes(data) for data in found] == [*expected, content[-1:], b""]
        assert (tally.charges, tally.bytes) == (1, sum(map(len, expected)) + 1)
        assert list(tally.seconds) == [Stage.READ]
        assert relay.gets == len(ranges) + 1, "what is empty is not asked for"

    def test_it_goes_to_other_processes(self, relay: Relay, bucket: Path) -> None:
        """Read with a store that was pickled, forked after a read, and forked again."""
        (bucket / "x.bin").write_bytes(b"abcdef")
        store = self.store(f"s3://{bucket.name}")
        item = self.only(store, f"s3://{bucket.name}/x.bin")
        assert bytes(store.read(item, [(0, 2)])[0]) == b"ab"
        copy = pickle.loads(pickle.dumps(store))
        assert bytes(copy.read(item, [(1, 2)])[0]) == b"bc"
        assert in_a_fork(lambda: in_a_fork(lambda: reads(store, item)) and reads(store, item))
        assert [bytes(data) for data in store.read(item, [(2, 2), (4, 2)])] == [b"cd", b"ef"]
        assert SECRET.encode() not in pickle.dumps(store)

    def test_what_is_not_there(
        self, relay: Relay, bucket: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # of what has just gone this server may break off its first answer
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
        (bucket / "x.bin").write_bytes(b"abc")
        store = self.store(f"s3://{bucket.name}")
        for url in (f"s3://{bucket.name}/y", f"s3://{bucket.name}/y*", "s3://no-such-bucket/x"):
            with pytest.raises(NothingFound) as caught:
                store.find(url)
            assert str(caught.value).startswith(url)
        item = self.only(store, f"s3://{bucket.name}/x.bin")
        store.read(item, [(0, 3)])  # a client may keep it open
        (bucket / "x.bin").unlink()
        with pytest.raises(NothingFound, match=r"x\.bin cannot be read: no such object"):
            store.read(item, [(0, 3)])

    def test_what_is_denied(
        self, relay: Relay, bucket: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (bucket / "x.bin").write_bytes(b"abc")
        url = f"s3://{bucket.name}/x.bin"
        item = self.only(self.store(url), url)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-what-it-is")
        for ask in (
            lambda: self.store(url).find(url),
            lambda: self.store(url).read(item, [(0, 3)]),
        ):
            with pytest.raises(StorageError) as caught:
                ask()
            assert "denied; check the credentials" in str(caught.value)
            assert not any(word in str(caught.value) for word in (KEY, SECRET, "not-what"))

    def test_an_object_that_shrank(self, relay: Relay, bucket: Path) -> None:
        (bucket / "x.bin").write_bytes(bytes(100))
        store = self.store(f"s3://{bucket.name}")
        item = self.only(store, f"s3://{bucket.name}/x.bin")
        (bucket / "x.bin").write_bytes(bytes(40))
        # for a moment this server announces the former size, and then breaks off
        comes(lambda: self.only(self.store(f"s3://{bucket.name}"), item.url).size == 40)
        for start in (30, 60):
            with pytest.raises(StorageError, match="cut short or replaced"):
                store.read(item, [(start, 20)])

    def test_anonymous(self, relay: Relay, bucket: Path) -> None:
        """The server refuses, but the request must have had no signature."""
        store = open_store(f"s3://{bucket.name}", {"s3_client": self.name, "anon": True})
        with pytest.raises(StorageError):
            store.find(f"s3://{bucket.name}")
        assert relay.headers
        assert not any("authorization" in headers for headers in relay.headers)

    def test_a_session_token_travels(
        self, relay: Relay, bucket: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (bucket / "x.bin").write_bytes(b"abc")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-the-tests")
        self.store(f"s3://{bucket.name}").find(f"s3://{bucket.name}")
        assert {h["x-amz-security-token"] for h in relay.headers} == {"token-of-the-tests"}

    def test_a_profile_says_all(
        self, relay: Relay, bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (bucket / "x.bin").write_bytes(b"abcdef")
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        (tmp_path / "config").write_text(
            f"[profile mine]\nservices = here\naws_access_key_id = {KEY}\n"
            f"aws_secret_access_key = {SECRET}\n[services here]\ns3 =\n"
            f"  endpoint_url = {relay.endpoint}\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        store = open_store(f"s3://{bucket.name}", {"s3_client": self.name, "profile": "mine"})
        assert reads(store, self.only(store, f"s3://{bucket.name}/x.bin"))

    def test_a_certificate_authority_of_ones_own(
        self, server: Server, certificate: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (bucket / "x.bin").write_bytes(b"abcdef")
        url = f"s3://{bucket.name}/x.bin"
        with relaying(server.endpoint, certificate) as relay:
            lead_to(relay.endpoint, monkeypatch)
            with pytest.raises(StorageError, match="named by AWS_CA_BUNDLE"):
                self.store(url).find(url)
            monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
            store = self.store(url)
            assert reads(store, self.only(store, url))


def reads(store: Store, item: ObjectInfo) -> bool:
    return [bytes(data) for data in store.read(item, [(2, 2), (4, 2)])] == [b"cd", b"ef"]


def in_a_fork(check: object) -> bool:
    """Return whether ``check()`` is true in a forked child; one that hangs counts as false."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(20)
            code = 0 if check() else 1  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
