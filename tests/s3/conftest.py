"""The server of S3 that these tests share, and an environment that leads to it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import s3fs

from pipeprof.storage import ObjectInfo, Store, open_store, retry
from pipeprof.storage.s3.clients.base import CLIENTS
from tests.s3.relay import Relay, relaying
from tests.s3.server import KEY, SECRET, Server, serving
from tests.support.requirements import missing

TRIED = CLIENTS if sys.version_info >= (3, 11) else ("pyarrow", "s3fs")
needs_obstore = pytest.mark.skipif("obstore" not in TRIED, reason="obstore needs Python 3.11")
CONTENT = bytes(range(256)) * 400
Opened = tuple[Store, ObjectInfo]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests, each of which has a bucket of its own."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "root").mkdir()
    with serving(folder / "root", folder / "log") as running:
        yield running


@pytest.fixture(autouse=True)
def at_the_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials and endpoint as most users give them: in the environment, and nowhere else."""
    lead_to(server.endpoint, monkeypatch)


@pytest.fixture(scope="session")
def one_relay(server: Server) -> Iterator[Relay]:
    """One relay for all tests, because s3fs is slow to create a client for a new endpoint."""
    with relaying(server.endpoint) as running:
        yield running


@pytest.fixture
def relay(one_relay: Relay, bucket: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """The relay before the server, set as the endpoint, with its faults in the test's bucket."""
    one_relay.forget()  # what tests without a bucket of their own have sent
    one_relay.bucket = bucket.name
    lead_to(one_relay.endpoint, monkeypatch)
    yield one_relay
    one_relay.forget()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrusted certificate of 127.0.0.1, with its key in the same file."""
    if not shutil.which("openssl"):
        missing("a certificate of one's own: the program openssl is missing")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", str(file) + ".key",
         "-out", str(file)],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_text(file.read_text() + Path(f"{file}.key").read_text())
    return file


@pytest.fixture
def new_clients() -> Iterator[None]:
    """Forget existing clients, which keep the environment that they were created in."""
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    s3fs.S3FileSystem.clear_instance_cache()


def lead_to(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",  # s3fs tries five times by itself; these pause in between
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(server: Server, tmp_path: Path) -> Path:
    """A new bucket, as the folder that the server serves: its name is the bucket's."""
    folder = server.root / tmp_path.name.replace("_", "-").lower()
    folder.mkdir()
    return folder


@pytest.fixture
def opened(bucket: Path, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Opened]:
    """An object found by a client, with the retries that users have."""
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
    """The pauses before other attempts, in seconds, none of which is made."""
    made: list[float] = []
    monkeypatch.setattr(retry, "sleep", made.append)
    return made
