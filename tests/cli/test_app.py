"""Tests of what all commands have in common."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from pipeprof import errors
from pipeprof.cli import app
from pipeprof.version import __version__
from tests.support.env import UNWATCHED

Captured = pytest.CaptureFixture[str]


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**UNWATCHED, **environment},
        check=False,
    )


def test_version(capsys: Captured) -> None:
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out == f"pipeprof, version {__version__}\n"


def test_help_lists_every_command_with_one_line(capsys: Captured) -> None:
    assert app.run(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, line in app.COMMANDS.items():
        assert f"{name} {line}" in text
    assert "Exit codes" in text


@pytest.mark.parametrize("name", app.COMMANDS)
def test_each_command_explains_itself_with_an_example(name: str, capsys: Captured) -> None:
    assert app.run([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"  pipeprof {name} " in text.partition("Examples:")[2]
    assert "--json" in text


def test_help_loads_few_modules() -> None:
    """A number of modules, since a time depends on the machine (0.1 s where bytecode is kept)."""
    code = "import sys; from pipeprof.cli import app; app.run(['--help']); print(len(sys.modules))"
    assert int(python("-c", code).stdout.splitlines()[-1]) < 180


@pytest.mark.parametrize(
    "code", ["import pipeprof", "from pipeprof.cli import app; app.run(['--help'])"]
)
def test_heavy_libraries_are_not_loaded_before_they_are_needed(code: str) -> None:
    heavy = "{'torch', 'pyarrow', 'numpy', 'rich', 'fsspec', 's3fs', 'orjson'}"
    done = python("-c", f"{code}; import sys; sys.stderr.write(str({heavy} & set(sys.modules)))")
    assert done.stderr == "set()"


def test_it_runs_as_a_module() -> None:
    done = python("-m", "pipeprof", "--version")
    assert (done.returncode, done.stdout) == (0, f"pipeprof, version {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["repot"], ["--frobnicate"], ["report"], ["report", "a", "b"], []]
)
def test_a_wrong_call_is_explained_and_exits_with_2(arguments: list[str], capsys: Captured) -> None:
    assert app.run(arguments) == 2
    printed = capsys.readouterr()
    assert "Usage: pipeprof" in printed.err
    assert printed.out == ""


def test_bash_can_complete() -> None:
    script = python("-m", "pipeprof", _PIPEPROF_COMPLETE="bash_source")
    assert script.returncode == 0
    assert "_PIPEPROF_COMPLETE=bash_complete" in script.stdout

    offered = python(
        "-m",
        "pipeprof",
        _PIPEPROF_COMPLETE="bash_complete",
        COMP_WORDS="pipeprof re",
        COMP_CWORD="1",
    )
    assert offered.stdout == "plain,readers\nplain,report\n"


def _error_classes(base: type[Exception] = errors.PipeprofError) -> list[type[Exception]]:
    return [base, *(one for child in base.__subclasses__() for one in _error_classes(child))]


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let every call of ``pipeprof report`` raise ``error``."""

    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("rest", nargs=-1)
    def command(rest: tuple[str, ...]) -> None:
        raise error

    monkeypatch.setattr(app.LazyGroup, "get_command", lambda *_: command)


@pytest.mark.parametrize("kind", _error_classes(), ids=lambda kind: kind.__name__)
def test_each_error_becomes_one_line_and_its_exit_code(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    codes = {errors.UsageError: 2, errors.StarvedError: 3, errors.SlowerError: 3}
    expected = next((code for base, code in codes.items() if issubclass(kind, base)), 1)
    raising(monkeypatch, kind("the shard x.csv ends at byte 12; write it anew."))
    assert app.run(["report"]) == expected
    printed = capsys.readouterr()
    assert printed.err == "pipeprof: the shard x.csv ends at byte 12; write it anew.\n"
    assert printed.out == ""


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    assert app.run(["report"]) == 130
    assert "pipeprof: interrupted." in capsys.readouterr().err


def test_output_that_nobody_reads_is_dropped_quietly() -> None:
    code = """
import click
from pipeprof.cli import app
app.LazyGroup.get_command = lambda *_: click.command()(lambda: print("hello"))
app.main(["report"])
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
        assert process.wait(30) == 1
    assert complaint == b""


def test_a_defect_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        app.run(["report"])


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (130, 130)])
def test_a_command_may_name_its_exit_code(
    result: int | None, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.LazyGroup, "get_command", lambda *_: click.command()(lambda: result))
    assert app.run(["report"]) == code


def test_main_exits() -> None:
    with pytest.raises(SystemExit) as exit_:
        app.main(["--version"])
    assert exit_.value.code == 0
