"""`make lint` finds errors that are caught and hidden."""

from __future__ import annotations

import pytest

from scripts.broad_excepts import silent

SILENT = """
try:
    work()
except {kind}:
    {body}
"""


@pytest.mark.parametrize("kind", ["Exception", "BaseException", "(OSError, Exception)"])
@pytest.mark.parametrize("body", ["pass", "return_nothing()", "raise Failed() from None"])
def test_a_silent_broad_except_is_found(kind: str, body: str) -> None:
    assert silent(SILENT.format(kind=kind, body=body)) == [4]


def test_so_is_a_bare_except() -> None:
    assert silent("try:\n    work()\nexcept:\n    pass") == [3]


def test_so_is_a_broad_suppress() -> None:
    assert silent("with suppress(Exception):\n    work()") == [1]
    assert silent("with contextlib.suppress(Exception):\n    work()") == [1]


@pytest.mark.parametrize(
    "body", ["raise", "raise Failed() from error", "log_caught(log, error, 'no figure')"]
)
def test_one_that_passes_the_error_on_or_logs_it_is_fine(body: str) -> None:
    assert silent(SILENT.format(kind="Exception as error", body=body)) == []


def test_one_may_log_by_a_function_of_its_module() -> None:
    function = "def stop(error):\n    log_caught(log, error, 'no figure')\n"
    source = SILENT.format(kind="Exception as error", body="stop(error)")
    assert silent(source) == [4]
    assert silent(function + source) == []


def test_a_narrow_except_says_enough_by_its_kind() -> None:
    assert silent(SILENT.format(kind="OSError", body="pass")) == []
    assert silent("with suppress(OSError):\n    work()") == []
