"""Objects appear whole or not at all, on local disks and on fsspec's file systems."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipeprof.atomic import is_leftover
from pipeprof.errors import OutputError
from pipeprof.storage.write import (
    object_sizes,
    open_object,
    read_object,
    remove_object,
)


@pytest.fixture(params=["a path", "file://", "memory://", "local://"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder of each kind: a plain path, its URL, and two file systems of fsspec."""
    if request.param == "memory://":
        yield f"memory://{tmp_path}"
        MemoryFileSystem.store.clear()
    else:
        (tmp_path / "data").mkdir()
        prefix = "" if request.param == "a path" else request.param
        yield f"{prefix}{tmp_path}/data"


def everything_in(folder: str) -> list[str]:
    fs, path = fsspec.core.url_to_fs(folder)
    return sorted(name.rpartition("/")[2] for name in fs.find(path))


def put(url: str, data: bytes) -> None:
    with open_object(url) as sink:
        sink.write(data)


def put_and_fail(url: str, error: type[BaseException]) -> None:
    with open_object(url) as sink:
        sink.write(b"half")
        raise error("in the body")


def test_the_object_holds_what_was_written_in_order(folder: str) -> None:
    with open_object(f"{folder}/object") as sink:
        sink.write(b"one ")
        sink.write(bytearray(b"two "))
        sink.write(memoryview(b"three"))
    assert sink.size == len(b"one two three")
    assert read_object(f"{folder}/object") == b"one two three"
    assert everything_in(folder) == ["object"]
    put(f"{folder}/object", b"replaced")
    assert read_object(f"{folder}/object") == b"replaced"


def test_an_object_has_no_name_before_it_is_whole(folder: str) -> None:
    with open_object(f"{folder}/object") as sink:
        sink.write(b"half")
        assert "object" not in object_sizes(folder)
    assert object_sizes(folder) == {"object": 4}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_of_an_object_after_an_error(
    folder: str, error: type[BaseException]
) -> None:
    with pytest.raises(error):
        put_and_fail(f"{folder}/object", error)
    assert everything_in(folder) == []


def test_an_existing_object_survives_a_failed_replacement(folder: str) -> None:
    put(f"{folder}/object", b"before")
    with pytest.raises(ValueError, match="in the body"):
        put_and_fail(f"{folder}/object", ValueError)
    assert read_object(f"{folder}/object") == b"before"
    # and the file system writes as it did before
    put(f"{folder}/another", b"whole")
    assert everything_in(folder) == ["another", "object"]


def test_an_empty_object(folder: str) -> None:
    with open_object(f"{folder}/empty"):
        pass
    assert object_sizes(folder) == {"empty": 0}


def test_sizes_distinguish_files_from_folders(folder: str) -> None:
    put(f"{folder}/file", b"12345")
    put(f"{folder}/_hidden", b"1")
    fs, path = fsspec.core.url_to_fs(folder)
    fs.makedirs(f"{path}/below")
    fs.pipe_file(f"{path}/below/other", b"1")
    sizes = object_sizes(folder)
    assert {name for name in sizes if not name.endswith("/")} == {"file", "_hidden"}
    assert sizes["file"] == 5
    assert "below/" in sizes


def test_a_missing_folder_counts_as_empty(folder: str) -> None:
    assert object_sizes(f"{folder}/not/there") == {}


def test_an_object_can_be_removed_twice(folder: str) -> None:
    put(f"{folder}/object", b"1")
    remove_object(f"{folder}/object")
    remove_object(f"{folder}/object")
    assert everything_in(folder) == []


def test_a_file_where_a_folder_is_needed(folder: str) -> None:
    put(f"{folder}/object", b"1")
    with pytest.raises(OutputError):
        object_sizes(f"{folder}/object")
    with pytest.raises(OutputError), open_object(f"{folder}/object/below"):
        pass
    assert everything_in(folder) == ["object"]


def test_local_folders_are_made_and_files_are_as_readable_as_any(tmp_path: Path) -> None:
    put(f"{tmp_path}/a/b/object", b"1")
    (tmp_path / "plain").write_bytes(b"1")
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "a/b/object", tmp_path / "plain")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("{tmp}/file/below/object", "a part of this path is a file"),
        ("{tmp}/file/object", "a part of this path is a file"),
        ("/proc/object", "cannot be written"),
        ("/sys/kernel/object", "choose a folder that you may write to"),
    ],
)
def test_where_nothing_can_be_written(tmp_path: Path, target: str, says: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    path = target.format(tmp=tmp_path)
    with pytest.raises(OutputError, match=says) as caught, open_object(path):
        pass
    assert path in str(caught.value)


def test_a_killed_writer_leaves_a_name_that_is_known(tmp_path: Path) -> None:
    with open_object(f"{tmp_path}/part-1.csv"):
        [left] = everything_in(str(tmp_path))
    assert is_leftover(left, "part-1.csv")
    assert not is_leftover(left, "part-2.csv")
    assert not is_leftover(".part-1.csv.tmp", "part-1.csv")
    assert not is_leftover("part-1.csv", "part-1.csv")


WRITE = """
import sys
from pipeprof.errors import OutputError
from pipeprof.storage.write import open_object
try:
    with open_object(sys.argv[1], needs=40_000_000) as sink:
        for _ in range(40):
            sink.write(bytes(1_000_000))
except OutputError as error:
    sys.exit(f"{error}")
"""


def run_write(path: str, before: tuple[str, ...] = (), **more: Any) -> str:
    """Return the error of a process that writes 40 MB to ``path``, and leaves nothing there."""
    ran = subprocess.run(
        [*before, sys.executable, "-c", WRITE, path], capture_output=True, text=True, **more
    )
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout == "", "left behind"
    return ran.stderr


def test_a_file_that_may_not_grow_leaves_nothing(tmp_path: Path) -> None:
    """The kernel takes part of a write, and refuses the rest, as a full disk does."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))

    complaint = run_write(f"{tmp_path}/object", preexec_fn=limit)
    assert complaint == f"{tmp_path}/object cannot be written: file too large.\n"
    assert everything_in(str(tmp_path)) == []


def in_small_mount(tmp_path: Path, options: str) -> tuple[str, ...]:
    """A command prefix that mounts ``tmp_path`` as a small disk that only the command sees;
    empty where the kernel refuses."""
    script = f'mount -t tmpfs -o {options} tmpfs {tmp_path} && "$@" ; code=$?; ls -A {tmp_path}; '
    prefix = ("unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", script + "exit $code")
    tried = subprocess.run([*prefix, "sh", "true"], capture_output=True)
    return (*prefix, "sh") if tried.returncode == 0 else ()


def test_a_full_disk(tmp_path: Path) -> None:
    mounted = in_small_mount(tmp_path, "size=3m")
    if not mounted:
        # without leave to mount, the kernel's own always-full device tells the same error
        with pytest.raises(OutputError, match="the disk is full"):
            _write_to_dev_full()
        return
    complaint = run_write(f"{tmp_path}/object", mounted)
    assert "the disk is full; about 40.0 MB more are needed, " in complaint
    assert "Traceback" not in complaint


def _write_to_dev_full() -> None:
    from pipeprof.storage.write import Sink

    with open("/dev/full", "wb", buffering=0) as file:
        Sink(file, "/dev/full").write(b"1")


def test_the_message_of_a_full_device() -> None:
    with pytest.raises(OutputError, match="the disk is full"):
        _write_to_dev_full()


def test_a_read_only_disk(tmp_path: Path) -> None:
    mounted = in_small_mount(tmp_path, "ro")
    if not mounted:
        mounted = ("env",)
        tmp_path = Path("/sys/kernel")
    complaint = run_write(f"{tmp_path}/object", mounted)
    assert "choose a folder that you may write to" in complaint


class Refusing(MemoryFileSystem):
    """A store whose client fails with an error that quotes the request, secrets and all."""

    protocol = "refusing"
    cachable = False
    failure: type[Exception] = RuntimeError

    def __init__(self, secret: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.secret = secret

    def _open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        raise self.failure(f"403 for {path}?key={self.secret}")

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        raise self.failure(f"403 for {path}?key={self.secret}")


fsspec.register_implementation("refusing", Refusing, clobber=True)


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (RuntimeError, "RuntimeError"),
        (PermissionError, "access denied; check the credentials"),
        (FileNotFoundError, "no such object, folder or bucket"),
    ],
)
def test_no_secret_is_in_an_error(
    failure: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refusing, "failure", failure)
    options = {"secret": "hunter2"}
    url = "refusing://user:pass@bucket/object?sig=abc"
    with pytest.raises(OutputError, match=says) as caught, open_object(url, options):
        pass
    message = str(caught.value)
    assert message.startswith("refusing://bucket/object cannot be written: ")
    assert not any(secret in message for secret in ("hunter2", "pass", "abc"))
    assert caught.value.__cause__ is None
    if failure is not FileNotFoundError:
        with pytest.raises(OutputError, match="cannot be listed"):
            object_sizes("refusing://bucket/folder", options)
