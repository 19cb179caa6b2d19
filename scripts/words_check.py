"""Keep vague words out of names and sentences, class names unique, and sentences short.

The check reads all names that the package defines, and each sentence of its docstrings, comments,
messages and documents. words_allowed.txt counts the old cases, one line per file or class; a count
may only shrink. After a rename or a move, `python -m scripts.words_check --update` rewrites that
list, and refuses to let it grow.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.sentences import Sentence, of_markdown, of_python

ROOMS = ("pipeprof", "loaders", "formats", "cli", "bench_data")
ALLOWED = Path("scripts/words_allowed.txt")
BANNED = {
    "told": "reported", "seen": "observed", "way": "path, model or choice", "goes": "continues",
    "going": "runner", "go_on": "run_remaining", "judged": "evaluated", "making": "fetch or batch",
    "held": "blocked", "beside": "concurrent", "dear": "expensive", "turns": "alternating",
    "crew": "workers", "hired": "started", "hiring": "start-up", "patience": "retry policy",
    "insist": "retry", "trouble": "error", "weigh": "nbytes", "crowded": "contention",
    "settled": "trimmed or decided",
}  # fmt: skip
"""Banned part of a name → what to use instead."""

PHRASES = re.compile(
    r"\b(told|seen|goes on|go on|judged|held up|beside|dear(er)?|by turns|crew|hir(ed|ing|es)"
    r"|patience|insists?|trouble|how sure|crowded|the making of|under way"
    r"|(on|in) (the|its|their|each other's) way|the way)\b",
    re.IGNORECASE,
)
"""Banned words and phrases of a sentence."""

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")
MOST_WORDS = 30
"""Longest allowed sentence."""

SAVED_TYPES = "pipeprof/model/"
"""The fields of these classes are names in saved JSON. They are a contract, so they may stay."""

Place = tuple[str, str]
"""``file:line``, and the complaint."""


def vague_names(source: str, path: str) -> list[Place]:
    """Return each name in the file at ``path`` that contains a banned word, once. Names are those
    of the module, its classes, functions, arguments, variables and attributes."""
    named = {Path(path).stem: 1}
    for line, name in _defined_names(source, with_fields=not path.startswith(SAVED_TYPES)):
        named.setdefault(name, line)
    return [
        (f"{path}:{line}", f"{name}: not {word!r}, but {instead}")
        for name, line in named.items()
        for word, instead in BANNED.items()
        if f"_{word}_" in f"_{_snake(name)}_"
    ]


def class_names(source: str, path: str) -> list[tuple[str, str]]:
    """Return each public class in the file, with its place."""
    classes = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ClassDef)]
    return [(each.name, f"{path}:{each.lineno}") for each in classes if each.name[0] != "_"]


def hard_sentences(sentences: Iterable[Sentence], path: str) -> list[Place]:
    """Return sentences of more than `MOST_WORDS` words, and those with one of `PHRASES`. Code
    counts as one word."""
    places = []
    for line, sentence in sentences:
        count = sum(bool(re.search(r"\w", word)) for word in sentence.split())
        start = " ".join(sentence.split())[:60]
        if count > MOST_WORDS:
            places.append((f"{path}:{line}", f"{count} words, more than {MOST_WORDS}: {start}…"))
        if phrase := PHRASES.search(sentence):
            places.append((f"{path}:{line}", f"use a plainer word than {phrase[0]!r}: {start}…"))
    return places


def _defined_names(source: str, with_fields: bool) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = [
        part.target for each in classes for part in each.body if isinstance(part, ast.AnnAssign)
    ]
    for node in ast.walk(tree):
        if not with_fields and node in fields:
            continue
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def find() -> dict[str, list[Place]]:
    """Return all complaints by file and by class name."""
    found: dict[str, list[Place]] = {}
    classes: dict[str, list[str]] = {}
    for path in (path for room in ROOMS for path in sorted(Path(room).rglob("*.py"))):
        source = path.read_text()
        name = path.as_posix()
        if places := vague_names(source, name) + hard_sentences(of_python(source), name):
            found[name] = places
        for name, place in class_names(source, path.as_posix()):
            classes.setdefault(name, []).append(place)
    for path in (path for each in DOCUMENTS for path in sorted(Path().glob(each))):
        if places := hard_sentences(of_markdown(path.read_text()), path.as_posix()):
            found[path.as_posix()] = places
    for name, places in classes.items():
        if len(places) > 1:
            found[f"class {name}"] = [
                (each, f"{name} is the name of several classes") for each in places
            ]
    return found


def read_allowed(text: str) -> dict[str, int]:
    """Parse lines such as ``loaders/instrument/worker_hooks.py 3`` or ``class Watch 2``."""
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line)
    return {what: int(count) for what, count in pairs}


def main(arguments: list[str]) -> int:
    """Print each place beyond the allowed counts, and return 1 when there is one."""
    found, allowed = find(), read_allowed(ALLOWED.read_text())
    counts = {what: len(places) for what, places in sorted(found.items())}
    if "--update" in arguments and sum(counts.values()) <= sum(allowed.values()):
        ALLOWED.write_text("".join(f"{what} {count}\n" for what, count in counts.items()))
        return 0
    worse = [what for what, count in counts.items() if count > allowed.get(what, 0)]
    fewer = "" if counts == allowed else "; the list can shrink, by --update"
    lines = [f"{at}: {why}" for what in worse for at, why in found[what]]
    print("\n".join(lines) or f"no new vague word or long sentence{fewer}")
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
