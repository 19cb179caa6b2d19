"""Programs in forks of a process that has imported what they need are as if Python started them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.wait import comes
from tests.support.warm import WarmPython


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmPython]:
    with WarmPython(sys.executable, ["decimal"]) as python:
        yield python


def test_a_script_has_its_arguments_folder_environment_and_end(
    warm: WarmPython, tmp_path: Path
) -> None:
    (tmp_path / "neighbour.py").write_text("WORD = 'near'")
    (tmp_path / "script.py").write_text(
        "import atexit, os, sys, neighbour\n"
        "print(__name__, sys.argv[1:], os.getcwd(), os.environ['WORD'], neighbour.WORD)\n"
        "print('decimal' in sys.modules, 'mine' in os.environ, file=sys.stderr)\n"
        "atexit.register(print, 'last')\n"
        "sys.exit(7)\n"
    )
    done = warm.run([str(tmp_path / "script.py"), "a b"], tmp_path, {"WORD": "given"})
    assert done.returncode == 7
    assert done.stdout == f"__main__ ['a b'] {tmp_path} given near\nlast\n"
    assert done.stderr == "True False\n"


def test_a_module_is_found_in_its_folder(warm: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys; print(__name__, sys.argv[1:])")
    done = warm.run(["-m", "mine", "word"], tmp_path, os.environ)
    assert (done.returncode, done.stdout) == (0, "__main__ ['word']\n")


def test_an_error_and_a_signal_are_its_end(warm: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("1 / 0")
    (tmp_path / "dies.py").write_text("import os; os.kill(os.getpid(), 9)")
    failed, died = (
        warm.run([str(tmp_path / name)], tmp_path, os.environ) for name in ("fails.py", "dies.py")
    )
    assert failed.returncode == 1
    assert "ZeroDivisionError" in failed.stderr
    assert died.returncode == -9


def test_what_takes_too_long_is_killed(warm: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text(
        "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(300)"
    )
    with pytest.raises(TimeoutError):
        warm.run([str(tmp_path / "sleeps.py")], tmp_path, os.environ, timeout=2)
    process = Path("/proc", (tmp_path / "pid").read_text())
    assert comes(lambda: not process.exists())


def test_ranks_have_the_variables_of_a_job(warm: WarmPython, tmp_path: Path) -> None:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    (tmp_path / "rank.py").write_text(f"import os; print(*map(os.environ.get, {names}))")
    said = warm.run_ranks([str(tmp_path / "rank.py")], 3, tmp_path, os.environ)
    lines = [done.stdout.split() for done in said]
    assert [line[:3] for line in lines] == [["0", "0", "3"], ["1", "1", "3"], ["2", "2", "3"]]
    assert len({tuple(line[3:]) for line in lines}) == 1
