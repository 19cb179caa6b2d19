"""`pipeprof run --live` on real scripts in a real terminal, and in a pipe."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.env import UNWATCHED
from tests.terminal import Terminal

RUN = [sys.executable, "-m", "pipeprof", "run", "--quiet", "--live"]
SCRIPT = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 80
    def __getitem__(self, index):
        time.sleep(0.04)
        if sys.argv[2] == "the worker dies" and index == 70:
            os._exit(1)
        if index % 20 == 0:
            os.write(2, b"<worker %d>" % index)  # past Python's own files
        return torch.tensor(index)

if __name__ == "__main__":
    print("begin")
    for number, batch in enumerate(DataLoader(Slow(), 1, num_workers=1)):  # made
        time.sleep(0.01)
        print(f"\\r{number} %", end="", file=sys.stderr)
        if number % 10 == 0:
            print(f"\\nbatch {number}", flush=True)
        if number == int(sys.argv[1]):
            open(sys.argv[2], "w").close()
            time.sleep(60)
    print("\\nend")
"""
"""It makes 24 batches a second, few enough to record all in full."""
(MADE,) = [n for n, text in enumerate(SCRIPT.splitlines(), 1) if "# made" in text]
PRINTED = b"begin\n" + b"".join(
    b"\r%d %%" % n + (b"\nbatch %d\n" % n if n % 10 == 0 else b"") for n in range(80)
) + b"\nend\n"  # fmt: skip


@pytest.fixture
def terminal():
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def by_main(written):
    """Return ``written`` without the output of the worker."""
    return re.sub(rb"<worker \d+>", b"", written).replace(b"\r\n", b"\n")


def test_in_a_terminal_every_line_of_the_script_arrives_and_the_panel_goes(terminal, script):
    process = terminal.run([*RUN, "script.py", "-1", ""], script, UNWATCHED)
    assert terminal.end(process) == 0
    assert by_main(terminal.theirs) == PRINTED
    written = re.findall(rb"<worker (\d+)>", terminal.theirs)
    assert written == [b"0", b"20", b"40", b"60"]
    shown = terminal.raw.decode()
    assert re.search(
        rf"-- pipeprof: script\.py:{MADE}, epoch 1: \d+ of 80 batches, .* left -", shown
    )
    assert re.search(r"starved +\d+\.\d % of the last \d", shown)
    assert re.search(r"rate +\d+\.?\d* samples/s; queue: \d\.\d of 2 batches ready", shown)
    assert re.search(r"fetch +█+ +\d+\.?\d* ms", shown)
    assert terminal.is_whole
    assert not any("pipeprof: script" in line for line in terminal.lines)
    batches = [line for line in terminal.lines if line.startswith("batch")]
    assert batches == [f"batch {number}" for number in range(0, 80, 10)]


def test_ctrl_c_ends_it_as_ever_and_the_panel_goes(terminal, script):
    process = terminal.run([*RUN, "script.py", "70", "reached"], script, UNWATCHED)
    assert terminal.shows((script / "reached").exists)
    assert terminal.shows(lambda: terminal.raw.count(b"\x1b7") > 1)
    assert not terminal.is_whole
    os.write(terminal.controller, b"\x03")
    assert terminal.end(process) == -2
    assert terminal.is_whole
    assert any(line.startswith("KeyboardInterrupt") for line in terminal.lines)
    assert not any(line.startswith("-- pipeprof") for line in terminal.lines)
    assert "loaders/live/view.py" not in "".join(terminal.lines)


def test_a_worker_that_dies_is_told_as_ever_and_the_panel_goes(terminal, script):
    process = terminal.run([*RUN, "script.py", "-1", "the worker dies"], script, UNWATCHED)
    assert terminal.end(process) == 1
    assert b"-- pipeprof: script.py" in terminal.raw
    assert terminal.is_whole
    assert b"RuntimeError: DataLoader worker" in terminal.theirs
    assert not any(line.startswith("-- pipeprof") for line in terminal.lines)


def test_in_a_pipe_lines_come_on_stderr_and_stdout_is_the_scripts_own(script):
    command = [*RUN, "--live-every", "0.2", "script.py", "-1", ""]
    done = subprocess.run(
        command, cwd=script, capture_output=True, timeout=100, check=False, env=UNWATCHED
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == re.sub(rb"\r\d+ %", b"", PRINTED)
    lines = re.findall(b"pipeprof: script.py:%d, epoch 1: ([0-9]+) of 80" % MADE, done.stderr)
    assert lines
    assert sorted(lines, key=int) == lines
    assert b"\x1b" not in done.stderr


def test_a_pause_that_is_none_is_refused(script):
    done = subprocess.run(
        [*RUN, "--live-every", "0", "script.py"], cwd=script, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--live-every" in done.stderr
