"""What goes wrong with a real S3 server: one line that says so, an exit code, and no secret."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import s3fs
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.cli.app import run
from pipeprof.errors import StorageError
from tests.s3.conftest import lead_to
from tests.s3.server import KEY, SECRET, Server, serving

pytestmark = [
    pytest.mark.usefixtures("new_clients"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

Captured = pytest.CaptureFixture[str]
SMALL = ["--format", "csv", "--size", "50kB", "--jobs", "1", "--quiet"]
WRONG = "not-what-it-is"


@pytest.fixture
def data(bucket: Path) -> str:
    (bucket / "data").mkdir()
    for name in ("a", "b"):
        (bucket / "data" / f"{name}.csv").write_bytes(b"id\n" + b"1\n" * 1_000)
    return f"s3://{bucket.name}/data"


def mistake(arguments: list[str], tmp_path: Path, capsys: Captured) -> str:
    """The one line on stderr of a command that fails and leaves nothing behind."""
    out = ["--out", str(tmp_path / "_out")] if arguments[0] == "sweep" else []
    assert run([*arguments, *out]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1, shown.err
    assert not any(secret in shown.err for secret in (KEY, SECRET, WRONG)), shown.err
    assert not (tmp_path / "_out").exists()
    return shown.err.removeprefix("pipeprof: ").removesuffix("\n")


def test_a_wrong_secret_in_the_environment(
    data: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", WRONG)
    why = "cannot be listed: access denied; check the credentials."
    assert mistake(["sweep", data], tmp_path, capsys) == f"{data} {why}"
    assert mistake(["generate", f"{data}2", *SMALL], tmp_path, capsys) == f"{data}2 {why}"


def test_a_wrong_secret_in_the_storage_options(
    server: Server, data: str, tmp_path: Path, capsys: Captured
) -> None:
    options = ["--storage-options", json.dumps(server.options(secret=WRONG))]
    why = "cannot be listed: access denied; check the credentials."
    assert mistake(["sweep", data, *options], tmp_path, capsys) == f"{data} {why}"


def test_no_credentials_at_all(
    data: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert mistake(["sweep", data], tmp_path, capsys).startswith(
        f"{data} cannot be listed: no credentials found; "
    )


def test_a_missing_bucket(tmp_path: Path, capsys: Captured) -> None:
    url = "s3://no-such-bucket/data"
    why = "no such object, folder or bucket."
    assert mistake(["sweep", url], tmp_path, capsys) == f"{url} cannot be listed: {why}"
    told = mistake(["generate", url, *SMALL], tmp_path, capsys)
    assert told == f"{url}/_pipeprof.partial.json cannot be written: {why}"


def test_a_missing_object(data: str, tmp_path: Path, capsys: Captured) -> None:
    for name in ("c.csv", "c*.csv"):
        told = mistake(["sweep", f"{data}/{name}"], tmp_path, capsys)
        assert told == f"{data}/{name} names no object with data; check the URL."


def test_a_user_name_in_the_url(data: str, tmp_path: Path, capsys: Captured) -> None:
    told = mistake(["sweep", data.replace("://", f"://{KEY}:{SECRET}@")], tmp_path, capsys)
    assert told.startswith(f"{data} cannot be listed: ")


def test_no_server_at_all(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_to("http://127.0.0.1:9", monkeypatch)  # the port that discards, closed everywhere
    why = "the server cannot be reached; check the endpoint and the network."
    url = "s3://bucket/data"
    assert mistake(["sweep", url], tmp_path, capsys) == f"{url} cannot be listed: {why}"
    told = mistake(["generate", url, *SMALL], tmp_path, capsys)
    assert told == f"{url} cannot be listed: {why}"


@pytest.mark.parametrize("num_workers", [0, 1])
def test_an_object_that_is_denied_while_training(
    num_workers: int, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials that expired between the listing and the read; a worker has its own client."""
    dataset = pickle.dumps(pipeprof.open_dataset(data))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", WRONG)
    s3fs.S3FileSystem.clear_instance_cache()
    said = failure(pickle.loads(dataset), num_workers)
    assert f"{data}/a.csv cannot be read: access denied; check the credentials." in said
    assert not any(secret in said for secret in (KEY, SECRET, WRONG))


def test_an_object_that_vanished_while_training(
    data: str, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # of what has just gone this server may break off its first answer
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    dataset = pipeprof.open_dataset(data)
    (bucket / "data" / "b.csv").unlink()
    assert failure(dataset, 0) == f"{data}/b.csv cannot be read: no such object, folder or bucket."


def test_a_server_that_disappears_while_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root" / "bucket").mkdir(parents=True)
    (tmp_path / "root" / "bucket" / "x.csv").write_bytes(b"id\n1\n")
    with serving(tmp_path / "root", tmp_path / "log") as server:
        lead_to(server.endpoint, monkeypatch)
        dataset = pipeprof.open_dataset("s3://bucket/x.csv")
        assert drain(dataset, 0) == 1
    assert failure(dataset, 0) == (
        "s3://bucket/x.csv cannot be read: the server cannot be reached; check the endpoint and "
        "the network."
    )


def drain(dataset: Any, num_workers: int) -> int:
    """Return the number of batches."""
    return len(list(DataLoader(dataset, batch_size=None, num_workers=num_workers)))


def failure(dataset: Any, num_workers: int) -> str:
    """Return the error of the loader."""
    try:
        drain(dataset, num_workers)
    except StorageError as error:
        error.with_traceback(None)  # it holds the iterator, and with it the worker
        return str(error)
    raise AssertionError("everything was read")
