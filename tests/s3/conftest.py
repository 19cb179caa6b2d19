"""The server of S3 that these tests share, and an environment that leads to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from tests.s3.server import KEY, SECRET, Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests; each takes a bucket of its own."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "root").mkdir()
    with serving(folder / "root", folder / "log") as running:
        yield running


@pytest.fixture(autouse=True)
def at_the_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials and endpoint as most users give them: in the environment, and nowhere else."""
    lead_to(server.endpoint, monkeypatch)


@pytest.fixture
def new_clients() -> Iterator[None]:
    """For a test that changes the environment: a client keeps the one that it was made in."""
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
