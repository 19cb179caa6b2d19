"""Find each `except Exception` and `suppress(Exception)` that hides an error.

A broad handler must raise the error again, or call `pipeprof.log.log_caught`, directly or through a
function of its module. `pipeprof.log.suppress_and_log` replaces `contextlib.suppress`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

BROAD = {"Exception", "BaseException"}
ROOMS = ("pipeprof", "loaders", "formats", "cli", "bench_data")
EXEMPT = ("pipeprof/log.py",)
"""Files that are not checked: the logger itself cannot log that it failed."""


def silent(source: str) -> list[int]:
    """Return the lines of broad handlers in ``source`` that neither raise the error nor log it."""
    tree = ast.parse(source)
    logging = {"log_caught"} | {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and "log_caught" in _called(node)
    }
    return sorted(_silent(tree, logging))


def _silent(tree: ast.AST, logging: set[str]) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            hidden = not _raises(node) and not _called(node) & logging
        elif isinstance(node, ast.Call) and _name(node.func) == "suppress":
            hidden = any(_is_broad(kind) for kind in node.args)
        else:
            continue
        if hidden:
            yield node.lineno


def _is_broad(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(_is_broad(each) for each in kind.elts)
    return kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD)


def _raises(handler: ast.ExceptHandler) -> bool:
    """Return whether the handler ends by raising, without hiding the original error."""
    last = handler.body[-1]
    if not isinstance(last, ast.Raise):
        return False
    return not (isinstance(last.cause, ast.Constant) and last.cause.value is None)


def _called(node: ast.AST) -> set[str]:
    return {_name(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def main() -> int:
    """Print each place, and return 1 when there is one."""
    found = [
        f"{path}:{line}: a broad except that logs nothing"
        for room in ROOMS
        for path in sorted(Path(room).rglob("*.py"))
        if path.as_posix() not in EXEMPT
        for line in silent(path.read_text())
    ]
    print("\n".join(found) or "every broad except says what it caught")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
