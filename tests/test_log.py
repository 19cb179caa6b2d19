"""Tests of the logging of pipeprof, which leaves the user's own logging unchanged."""

from __future__ import annotations

import errno
import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeprof.errors import StorageError
from pipeprof.log import describe_error, log_caught, suppress_and_log, warn
from tests.support.warm import with_torch

TRAINING = """
import logging, sys
from torch.utils.data import DataLoader
import pipeprof

class Odd:
    def __len__(self):
        raise ValueError("s3://key:hunter2@bucket")

def odd(samples):
    return Odd()

if __name__ == "__main__":
    workers, context = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    loader = DataLoader(range(4), batch_size=None, collate_fn=odd, num_workers=workers,
                        multiprocessing_context=context)
    for batch in pipeprof.wrap(loader):
        pass
    print(logging.getLogger().handlers, logging.getLogger().level)
"""


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A script whose batches cannot be counted: a broad except takes each of them."""
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    return script


def run(
    script: Path, *arguments: str, level: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PIPEPROF_LOG"}
    if level is not None:
        environment["PIPEPROF_LOG"] = level
    if "spawn" in arguments:  # its workers import the script, which must be the program itself
        command = [sys.executable, str(script), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    else:
        done = with_torch().run([str(script), *arguments], script.parent, environment)
    assert done.returncode == 0, done.stderr
    return done


def test_nothing_is_shown_unless_it_is_asked_for(training: Path) -> None:
    assert run(training, "0").stderr == ""
    assert run(training, "2").stderr == ""


@pytest.mark.parametrize("where", [("0",), ("2", "fork"), ("2", "spawn")])
def test_what_was_caught_is_shown_in_main_and_in_workers(
    where: tuple[str, ...], training: Path
) -> None:
    done = run(training, *where, level="debug")
    lines = [line for line in done.stderr.splitlines() if "samples" in line]
    assert lines, done.stderr
    assert all(line.startswith("DEBUG pipeprof.loaders.") for line in lines)
    assert all("ValueError at train.py:8" in line for line in lines)
    assert "hunter2" not in done.stderr


def test_the_users_own_logging_is_left_alone(training: Path) -> None:
    assert run(training, "0", level="debug").stdout == run(training, "0").stdout == "[] 30\n"


def test_a_level_above_hides_what_is_below(training: Path) -> None:
    assert run(training, "0", level="WARNING").stderr == ""


def test_an_unknown_level_is_named_and_nothing_fails(training: Path) -> None:
    [line] = run(training, "0", level="loud").stderr.splitlines()
    assert "PIPEPROF_LOG=loud" in line
    assert "debug" in line


def test_a_users_handler_gets_what_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("pipeprof.tests")
    with caplog.at_level(logging.DEBUG, "pipeprof"), suppress_and_log(log, "no figure"):
        raise KeyError("hunter2")
    [record] = caplog.records
    assert (record.name, record.levelname) == ("pipeprof.tests", "DEBUG")
    assert record.getMessage().startswith("no figure: KeyError at test_log.py")


def test_what_the_user_has_to_know_is_printed_where_no_handler_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("pipeprof.tests.alone")
    monkeypatch.setattr(log, "propagate", False)
    log.addHandler(logging.NullHandler())
    warn(log, "an export did not arrive")
    assert capsys.readouterr().err == "pipeprof: an export did not arrive\n"
    file = io.StringIO()
    log.addHandler(logging.StreamHandler(file))
    warn(log, "an export did not arrive")
    assert (capsys.readouterr().err, file.getvalue()) == ("", "an export did not arrive\n")
    monkeypatch.setattr(sys, "stderr", None)
    log.handlers.clear()
    warn(log, "nobody hears it, and nothing is raised")


def test_only_errors_are_suppressed() -> None:
    with pytest.raises(KeyboardInterrupt), suppress_and_log(logging.getLogger("pipeprof"), "none"):
        raise KeyboardInterrupt


def test_an_error_that_nobody_wants_to_see_is_not_described() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise AssertionError("it was described")

    log_caught(logging.getLogger("pipeprof.tests"), Unspeakable(), "no figure")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (AttributeError("no attribute 'next'"), "AttributeError: no attribute 'next'"),
        (TypeError("one line\nand another"), "TypeError: one line and another"),
        (OSError(errno.ENOSPC, "wherever"), "OSError: No space left on device"),
        (StorageError("nothing at s3://a:b@c/d."), "StorageError: nothing at (a URL)"),
        (ValueError("s3://key:hunter2@bucket"), "ValueError"),
        (RuntimeError("token=hunter2"), "RuntimeError"),
    ],
)
def test_an_error_is_described_without_what_may_be_secret(error: Exception, text: str) -> None:
    assert describe_error(error) == text


def test_a_closed_stderr_disturbs_nobody(training: Path) -> None:
    training.write_text(TRAINING.replace("    for batch", "    sys.stderr.close()\n    for batch"))
    assert run(training, "0", level="debug").stdout == "[] 30\n"
