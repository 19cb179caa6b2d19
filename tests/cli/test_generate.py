"""`pipeprof generate` as a user runs it: output, exit codes and Ctrl-C."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import orjson
import pytest

from pipeprof.bench_data.generate import JOURNAL, GenerateSpec, generate
from pipeprof.cli import options
from pipeprof.cli.app import run
from pipeprof.cli.generate import GenerateProgressLines
from pipeprof.manifest import MANIFEST
from tests.support.env import UNWATCHED
from tests.support.requirements import missing

Captured = pytest.CaptureFixture[str]
SMALL = ["--kind", "tokens", "--format", "csv", "--size", "400kB", "--shards", "4", "--jobs", "1"]


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_tells_what_it_wrote_and_does_nothing_twice(tmp_path: Path, capsys: Captured) -> None:
    assert run(["generate", str(tmp_path), *SMALL]) == 0
    printed = capsys.readouterr()
    assert printed.err == "generating 400 kB of rows: 0.0 %\n"
    assert printed.out.startswith(
        f"{tmp_path}: tokens in csv, no compression, seed 0, 157 rows in 4 files, about 400 kB in "
        "RAM, "
    )
    assert " kB on storage; written in " in printed.out
    assert printed.out.count("\n") == 1

    assert run(["generate", str(tmp_path), *SMALL]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.endswith(" on storage; already complete: nothing written\n")


def test_json_is_the_manifest_and_nothing_else(tmp_path: Path, capsys: Captured) -> None:
    for _ in range(2):
        assert run(["generate", str(tmp_path), *SMALL, "--json", "--quiet"]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        assert printed.out == (tmp_path / MANIFEST).read_text()
    assert orjson.loads(printed.out)["rows"] == 157


def test_help_explains_the_size_and_has_an_example(capsys: Captured) -> None:
    assert run(["generate", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Approximate size of the rows in RAM" in printed
    assert "pipeprof generate data/csv --kind tabular --format csv --size 200MB" in printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--size", "many"], "'many' is not a size; write it like 64KiB"),
        (["--size", "0"], "the least is 1 byte"),
        (["--shards", "0"], "0 is not in the range x>=1"),
        (["--shards", "158"], "choose 1 to 157"),
        (["--jobs", "-1"], "-1 is not in the range"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--kind", "video"], "'tabular', 'wide', 'images', 'tokens'"),
        (["--format", "avro"], "'csv', 'parquet', 'tfrecord'"),
        (["--compression", "lzma"], "choose one of none, gzip"),
        (["--storage-options", "key=hunter2"], "must be a JSON object"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str], says: str, tmp_path: Path, capsys: Captured
) -> None:
    assert run(["generate", str(tmp_path / "data"), *SMALL, *arguments]) == 2
    printed = capsys.readouterr()
    assert says in " ".join(printed.err.split())
    assert "hunter2" not in printed.err
    assert not (tmp_path / "data").exists()


def test_a_folder_that_is_taken_exits_with_1(tmp_path: Path, capsys: Captured) -> None:
    assert run(["generate", str(tmp_path), *SMALL]) == 0
    assert run(["generate", str(tmp_path), *SMALL, "--seed", "1"]) == 1
    printed = capsys.readouterr().err
    assert "holds another data set (tokens in csv" in printed
    assert "repeat the command" not in printed
    assert run(["generate", str(tmp_path), *SMALL, "--seed", "1", "--overwrite"]) == 0


@pytest.mark.parametrize("folder", ["{tmp}/file", "{tmp}/file/data", "/proc/data"])
def test_where_nothing_can_be_written(folder: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("mine")
    assert run(["generate", folder.format(tmp=tmp_path), *SMALL]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("pipeprof: ")
    assert printed.count("\n") == 1
    assert files_in(tmp_path) == {"file": b"mine"}


LARGE = GenerateSpec("", "tabular", "csv", 16_000_000, shards=16)


def start(folder: Path, **more: Any) -> subprocess.Popen[str]:
    """Generate ``LARGE`` in two processes of its own."""
    command = [sys.executable, "-m", "pipeprof", "generate", str(folder), "--format", LARGE.format,
               "--size", str(LARGE.size_bytes), "--shards", "16", "--jobs", "2"]  # fmt: skip
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=UNWATCHED, **more
    )


def wait_for_another_shard(folder: Path, process: subprocess.Popen[str]) -> None:
    there = set(folder.glob("part-*"))
    while set(folder.glob("part-*")) <= there:
        assert process.poll() is None
        time.sleep(0.01)


def test_after_ctrl_c_and_a_kill_the_same_command_goes_on(tmp_path: Path) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    process = start(broken, start_new_session=True)
    wait_for_another_shard(broken, process)
    # as a terminal does: to the process and to all that it has started
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == ""
    printed = [line for line in err.splitlines() if line and not line.startswith("generating ")]
    assert printed == [
        "Finished files stay: repeat the command to continue.",
        "pipeprof: interrupted.",
    ]
    kept = files_in(broken)
    assert JOURNAL in kept
    assert MANIFEST not in kept
    assert not [name for name in kept if name.endswith(".tmp")]

    process = start(broken)
    wait_for_another_shard(broken, process)
    process.kill()
    process.communicate()  # ends only when the workers, which hold the pipes too, have ended
    assert MANIFEST not in files_in(broken)

    process = start(broken)
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert ": 0.0 %" not in err
    generate(replace(LARGE, url=str(whole)))
    assert files_in(broken) == files_in(whole)
    assert all(files_in(whole)[name] == data for name, data in kept.items() if name != JOURNAL)


def test_a_worker_that_is_killed_is_told(tmp_path: Path) -> None:
    process = start(tmp_path)
    wait_for_another_shard(tmp_path, process)
    for worker in workers_of(process.pid):
        os.kill(worker, signal.SIGKILL)
        break
    _, err = process.communicate()
    assert process.returncode == 1
    assert "pipeprof: A process that wrote shards was killed" in err
    assert "Traceback" not in err


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    """A file-size limit stands for the disk: unlike a small mount it needs no privilege."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    process = start(tmp_path, preexec_fn=limit)
    _, err = process.communicate()
    assert process.returncode == 1
    assert "cannot be written: file too large" in err
    assert "Finished files stay: repeat the command to continue." in err
    assert "Traceback" not in err
    assert sorted(files_in(tmp_path)) == [JOURNAL]


def test_a_small_disk_that_fills_up(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipeprof", "generate", f"{tmp_path}/data", "--format", "csv",
               "--size", "20MB", "--jobs", "2"]  # fmt: skip
    mount = f"mount -t tmpfs -o size=8m tmpfs {tmp_path} || exit 77"
    script = f'{mount}; "$@"; echo $?; ls -A {tmp_path}/data'
    flags = "-m" if os.geteuid() == 0 else "-rm"
    ran = subprocess.run(
        ["unshare", flags, "sh", "-c", script, "sh", *command], capture_output=True, text=True
    )
    if ran.returncode != 0:
        assert "mount" in ran.stderr or "unshare" in ran.stderr
        missing("a small disk cannot be mounted here")
    code, *left = ran.stdout.split()
    assert code == "1"
    assert "the disk is full; about " in ran.stderr
    assert "Finished files stay" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert JOURNAL in left
    assert MANIFEST not in left
    assert not [name for name in left if name.endswith(".tmp")]


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pipeprof", "generate", str(tmp_path), *SMALL]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
    os.close(theirs)
    parts: list[bytes] = []
    with suppress(OSError):  # once all is read
        while parts[-1:] != [b""]:
            parts.append(os.read(ours, 100_000))
    os.close(ours)
    shown = b"".join(parts).decode()
    assert "generating" in shown
    assert "0:00:00" in shown
    assert " of rows" not in shown
    assert "written in" in ran.stdout


def test_elsewhere_a_line_now_and_then_tells_the_time_left(capsys: Captured) -> None:
    now = 0.0
    lines = GenerateProgressLines(0, lambda: now)
    for second in range(26):
        now = float(second)
        lines(second * 1_000_000, 100_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "generating 100 MB of rows: 0.0 %",
        "generating 100 MB of rows: 10.0 %, about 90.0 s left",
        "generating 100 MB of rows: 20.0 %, about 80.0 s left",
    ]


class TestOptions:
    """The values that several commands take."""

    def test_values(self) -> None:
        assert options.SIZE("1.5KiB") == 1536
        assert options.INT_LIST(0)("0,2,16") == (0, 2, 16)
        assert (options.SHARE("5%"), options.SHARE("0.05")) == (0.05, 0.05)
        assert options.json_object('{"anon": true}') == {"anon": True}

    @pytest.mark.parametrize(
        ("kind", "text", "says"),
        [
            (options.INT_LIST(0), "-1", "-1 is too small; the least is 0"),
            (options.INT_LIST(1), "2,0", "0 is too small; the least is 1"),
            (options.INT_LIST(0), "two", "'two' is not a list of whole numbers"),
            (options.INT_LIST(0), "", "is not a list of whole numbers"),
            (options.SHARE, "half", "'half' is not a share"),
            (options.SHARE, "150%", "not between 0% and 100%"),
            (options.SHARE, "nan", "not between 0% and 100%"),
            (options.json_object, "[1]", "must be a JSON object"),
            (options.json_object, "{", "must be a JSON object"),
        ],
    )
    def test_what_they_refuse(self, kind: Any, text: str, says: str) -> None:
        with pytest.raises(click.BadParameter, match=says):
            kind(text)
