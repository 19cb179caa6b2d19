from __future__ import annotations

import inspect
import re

import pytest

from pipeprof import errors

TREE = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if kind.__module__ == "pipeprof.errors"
]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_one_except_clause_catches_them_all(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.PipeprofError)
    assert kind.__doc__


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    assert {kind.__name__: kind.exit_code for kind in TREE if kind.exit_code != 1} == {
        "UsageError": 2,
        "SlowerError": 3,
        "StarvedError": 3,
    }


def test_the_drawn_tree_is_the_real_one() -> None:
    drawn = re.findall(r"^ {4}([│├└─ ]*)([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE)
    parents: list[str] = []
    for branch, name in drawn:
        depth = len(branch) // 4
        parents[depth:] = [name]
        expected = parents[depth - 1] if depth else "Exception"
        assert getattr(errors, name).__base__.__name__ == expected
    assert {name for _, name in drawn} == {kind.__name__ for kind in TREE}
