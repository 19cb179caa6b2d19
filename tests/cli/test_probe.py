"""`pipeprof probe` on real files."""

from __future__ import annotations

import json
import os

import fsspec
import pytest
from click.testing import CliRunner

from pipeprof.cli.app import run
from pipeprof.cli.probe import command

QUICK = [
    "--seconds",
    "60",
    "--max-requests",
    "600",
    "--feed",
    "0.2",
    "--block",
    "4KiB",
    "--block",
    "64KiB",
    "--in-flight",
    "2",
    "--processes",
    "1",
]


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.bin").write_bytes(os.urandom(1 << 20))
    (tmp_path / "empty.bin").touch()
    return tmp_path


def test_it_says_what_the_storage_gives_and_writes_nothing(folder):
    before = sorted(folder.iterdir())
    done = CliRunner().invoke(command, [str(folder), *QUICK])
    assert done.exit_code == 0, done.output
    assert "3 objects, 3.15 MB" in done.stdout
    assert "Limits of the storage" in done.stdout
    assert "random 4.10 kB, 1 concurrent request: " in done.stderr
    assert sorted(folder.iterdir()) == before


def test_json_alone_goes_to_stdout(folder):
    done = CliRunner().invoke(command, [str(folder), *QUICK, "--json"])
    result = json.loads(done.stdout)
    assert done.stderr == ""
    assert len(result["jobs"]) == 6
    assert result["pipeprof probe"]["objects"] == 3


def test_any_file_system_of_fsspec():
    memory = fsspec.filesystem("memory")
    memory.pipe("/probed/one", os.urandom(1 << 18))
    try:
        done = CliRunner().invoke(command, ["memory://probed/one", *QUICK])
    finally:
        memory.rm("/probed", recursive=True)
    assert "fsspec MemoryFileSystem; caches: unknown" in done.stdout


def test_what_a_store_may_bill_is_said_before_it_is_read():
    memory = fsspec.filesystem("memory")
    memory.pipe("/probed/one", os.urandom(1 << 18))
    arguments = ["memory://probed", *QUICK, "--max-requests", "70", "--max-bytes", "5MB"]
    try:
        done = CliRunner().invoke(command, [*arguments, "--write", "100kB"])
        silent = CliRunner().invoke(command, [*arguments, "--json"])
    finally:
        memory.rm("/probed", recursive=True)
    assert done.stderr.splitlines()[0] == (
        "memory://probed: 1 object; the probe makes at most 70 read requests for at most 5.00 MB "
        "(--max-requests, --max-bytes), and write 200 kB and 200 small objects. "
        "Stores may bill both."
    )
    assert silent.stderr == ""
    read = json.loads(silent.stdout)["pipeprof probe"]
    assert read["read_requests"] <= 70
    assert read["read_bytes"] <= 5_000_000


def test_several_processes_share_the_requests(folder):
    done = CliRunner().invoke(command, [str(folder), *QUICK, "--processes", "2", "--json"])
    assert done.exit_code == 0, done.output
    jobs = json.loads(done.stdout)["jobs"]
    assert {(job["job options"]["numjobs"], job["processes"]) for job in jobs} == {
        ("1", 1),
        ("2", 2),
    }


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["/no/such/place"], 1, "/no/such/place does not exist"),
        (["nothing://x"], 2, "nothing://x cannot be opened"),
        (["x", "--block", "0"], 2, "the least is 1 byte"),
        (["x", "--block", "1000"], 2, "--block 1000 must be a multiple of 4096 bytes"),
        (["x", "--max-requests", "0"], 2, "max-requests"),
    ],
)
def test_what_cannot_be_probed(arguments, code, says, capfd):
    assert run(["probe", *arguments]) == code
    assert says in capfd.readouterr().err


def test_writing_needs_a_folder(folder, capfd):
    assert run(["probe", str(folder / "0.bin"), "--write", "1MB"]) == 2
    assert "--write needs one to write into" in capfd.readouterr().err


def test_what_training_needs_is_told(folder):
    before = sorted(folder.iterdir())
    done = CliRunner().invoke(command, [str(folder), *QUICK, "--write", "1MB"])
    assert done.exit_code == 0, done.output
    assert "checkpoint  1.00 MB saved at " in done.stdout
    assert "small files/s" in done.stdout
    assert sorted(folder.iterdir()) == before


def test_empty_files_hold_nothing_to_read(tmp_path, capfd):
    (tmp_path / "empty").touch()
    assert run(["probe", str(tmp_path)]) == 1
    assert "holds only empty files" in capfd.readouterr().err
