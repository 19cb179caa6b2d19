"""The rows at the bottom of a terminal disturb no other output, and are released."""

import os
import shutil
import signal
import sys

import pytest

from pipeprof.loaders.live.terminal_region import TerminalRegion
from tests.support.env import UNWATCHED
from tests.support.leaks import descriptors
from tests.support.requirements import missing
from tests.terminal import Terminal


@pytest.fixture
def screen(terminal):
    yield (made := TerminalRegion(terminal.device))
    made.close()


@pytest.fixture
def usual():
    """Reset the handlers of Ctrl-Z and of signals that end a process. A shell may have them ignored
    for background jobs."""
    numbers = (signal.SIGTSTP, signal.SIGTERM, signal.SIGQUIT)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield numbers
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_lines_of_others_scroll_above_the_rows_and_none_is_lost(terminal, screen):
    for number in range(100):
        if number % 7 == 0:
            screen.show([f"-- {number}", "two", "three"])
        os.write(terminal.device, b"line %d\n" % number)
        terminal.drain()
        assert terminal.display[-3:] == [f"-- {number // 7 * 7}", "two", "three"]
    screen.close()
    terminal.drain()
    assert terminal.lines == [f"line {number}" for number in range(100)]
    assert terminal.is_whole
    assert terminal.theirs == b"".join(b"line %d\r\n" % number for number in range(100))


def test_a_line_that_is_being_written_goes_on_where_it_was(terminal, screen):
    os.write(terminal.device, b"\n" * 23 + b"10 %")
    screen.show(["shown"])
    os.write(terminal.device, b"\r20 %")
    screen.show(["shown again", "and higher"])
    os.write(terminal.device, b" done\nnext")
    terminal.drain()
    assert terminal.lines == ["20 % done", "next", "shown again", "and higher"]
    screen.close()
    terminal.drain()
    assert terminal.lines == ["20 % done", "next"]


def test_colours_of_a_line_go_on_too(terminal, screen):
    os.write(terminal.device, b"\x1b[31mred ")
    screen.show(["\x1b[1mbold\x1b[0m"])
    os.write(terminal.device, b"still")
    terminal.drain()
    row = terminal._screen.buffer[0]
    assert [row[4].fg, row[4].bold] == ["red", False]


def test_without_room_nothing_is_shown(terminal, screen):
    screen.show(["row"] * 17)
    terminal.drain()
    assert terminal.raw == b""
    screen.show(["row"] * 16)
    terminal.drain()
    assert terminal.lines == ["row"] * 16
    terminal.resize(12, 80)
    screen.show(["row"] * 16)
    terminal.drain()
    assert terminal.is_whole


def test_after_a_change_of_size_the_rows_are_at_the_new_bottom(terminal, screen):
    screen.show(["shown"])
    terminal.drain()
    terminal.resize(30, 60)
    screen.show(["shown"])
    terminal.drain()
    assert terminal.display[-1] == "shown"
    assert terminal.lines == ["shown"], "and are not left where the bottom was"
    assert screen.width == 59


def test_nobody_waits_for_a_terminal_that_takes_nothing(terminal, screen):
    for number in range(1000):  # and nobody reads
        screen.show([f"{number} " * 10] * 10)
    terminal.drain()
    for _ in range(2):  # what was begun is ended
        screen.show(["shown"])
        terminal.drain()
    assert terminal.lines == ["shown"]


def test_a_forked_process_paints_nothing(terminal, screen):
    screen.show(["shown"])
    terminal.drain()
    before = terminal.raw
    child = os.fork()
    if not child:
        screen.show(["by the child"])
        screen.close()
        os._exit(0)
    os.waitpid(child, 0)
    terminal.drain()
    assert terminal.raw == before


def test_a_forked_process_has_no_handler_of_ours(usual, screen):
    screen.show(["shown"])
    child = os.fork()
    if not child:
        os._exit({signal.getsignal(number) for number in usual} != {signal.SIG_DFL})
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("what", ["a file", "closed", "dumb"])
def test_where_there_is_no_terminal_to_steer_there_is_no_screen(what, terminal, monkeypatch):
    if what == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    file = open(os.devnull if what == "a file" else os.dup(terminal.device), "w")  # noqa: SIM115
    if what == "closed":
        file.close()
    assert TerminalRegion.of(file) is None
    file.close()


def test_rows_are_given_back_though_the_descriptor_leads_elsewhere_by_then(terminal, tmp_path):
    descriptor = os.dup(terminal.device)
    screen = TerminalRegion(descriptor)
    screen.show(["shown"])
    with open(tmp_path / "log", "wb") as log:
        os.dup2(log.fileno(), descriptor)
    screen.show(["shown again"])
    screen.close()
    os.close(descriptor)
    terminal.drain()
    assert terminal.is_whole
    assert terminal.lines == []
    assert (tmp_path / "log").read_bytes() == b""


def test_nothing_stays_behind(terminal, usual):
    before = descriptors()
    screen = TerminalRegion(terminal.device)
    screen.show(["shown"])
    assert signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL
    screen.close()
    assert {signal.getsignal(number) for number in usual} == {signal.SIG_DFL}
    assert not descriptors() - before


SHOWN = """
import resource, signal, sys, time
from pipeprof.loaders.live.terminal_region import TerminalRegion
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # which a shell may ignore for what it runs beside
if "own" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the script's own handler"))
screen = TerminalRegion(2)
for number in range(1000):
    screen.show(["painted"])
    print(number, flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def shown(tmp_path):
    """Return the environment in which `shown.py` runs in the folder of the test."""
    (tmp_path / "shown.py").write_text(SHOWN)
    return {**UNWATCHED, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_signals_that_end_a_process_are_the_scripts_own(usual, screen):
    screen.show(["shown"])
    for number in (signal.SIGTERM, signal.SIGQUIT):
        assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_after_a_signal_that_kills_only_the_last_rows_stay_below(number, terminal, shown, tmp_path):
    process = terminal.run([sys.executable, "shown.py"], tmp_path, shown)
    assert terminal.shows(lambda: terminal.display[-1] == "painted")
    process.send_signal(number)
    assert terminal.end(process) == -number
    for line in range(30):
        os.write(terminal.device, b"the shell, line %d\n" % line)
    terminal.drain()
    assert terminal.display[-1] == "painted"
    assert terminal.lines[-2] == "the shell, line 29"
    os.write(terminal.device, b"\x1bc")  # what `reset` sends
    terminal.drain()
    assert terminal.is_whole
    assert terminal.display == [""] * 24


def test_a_handler_of_the_scripts_own_is_left_as_it_is(terminal, shown, tmp_path):
    process = terminal.run([sys.executable, "shown.py", "own"], tmp_path, shown)
    assert terminal.shows(lambda: terminal.display[-1] == "painted")
    process.terminate()
    assert terminal.end(process) == 1
    assert b"the script's own handler" in terminal.raw


def test_ctrl_z_gives_the_rows_back_and_fg_takes_them_again(terminal, shown, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        missing("bash, whose job control stops and goes on")
    command = f"{sys.executable} shown.py; echo 'the shell'; fg >/dev/null; echo 'the end'"
    process = terminal.run([bash, "-mc", command], tmp_path, shown)
    assert terminal.shows(lambda: terminal.display[-1] == "painted")
    assert not terminal.is_whole
    os.write(terminal.controller, b"\x1a")
    assert terminal.shows(lambda: "the shell" in terminal.lines)
    at = terminal.raw.index(b"the shell")
    stopped = Terminal()
    stopped._stream.feed(terminal.raw[:at])
    assert stopped.is_whole
    assert "painted" not in stopped.lines
    stopped.close()
    assert terminal.shows(lambda: terminal.raw[at:].count(b"painted") > 2), "it is painted again"
    os.write(terminal.controller, b"\x03")
    terminal.end(process)
