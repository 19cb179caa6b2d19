"""Keep vague words out of new names, class names unique, and sentences of the documents short.

Checked are the names of modules, classes and functions in the package, and each sentence of the
documents. What stood there before is counted in words_allowed.txt, a line per file or class, and a
count may only shrink. After a rename or a move write that list anew by
`python -m scripts.words_check --update`, which refuses to let it grow.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

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
"""Words of a name, and what to say instead."""

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")
MOST_WORDS = 30
"""Of a sentence."""
_NO_PROSE = re.compile(r"^ *(```|~~~).*?^ *\1 *$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_LIST_ITEM = re.compile(r"([-*+]|\d+\.) +")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!et al\.)[*_)\"]* +")

Place = tuple[str, str]
"""``file:line``, and what is wrong there."""


def vague_names(source: str, path: str) -> list[Place]:
    """Names in the file at ``path`` that hold a banned word."""
    named = [(1, Path(path).stem)] + [(node.lineno, node.name) for node in _named(source)]
    return [
        (f"{path}:{line}", f"{name}: not {word!r}, but {instead}")
        for line, name in named
        for word, instead in BANNED.items()
        if f"_{word}_" in f"_{_snake(name)}_"
    ]


def class_names(source: str, path: str) -> list[tuple[str, str]]:
    """Each class in the file, and its place. A private name is its module's own, and left out."""
    classes = [node for node in _named(source) if isinstance(node, ast.ClassDef)]
    return [(each.name, f"{path}:{each.lineno}") for each in classes if each.name[0] != "_"]


def long_sentences(markdown: str, path: str) -> list[Place]:
    """Sentences of more than `MOST_WORDS` words. Code in a sentence counts as one word; code
    blocks, tables, headings and texts of pictures are left out."""
    places = []
    for line, paragraph in _paragraphs(markdown):
        plain = re.sub(r"``.+?``|`[^`]+`", "CODE", paragraph)
        plain = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", plain)
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        for sentence in _SENTENCE_END.split(plain):
            count = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            if count > MOST_WORDS:
                why = f"{count} words, more than {MOST_WORDS}: {sentence[:60]}…"
                places.append((f"{path}:{line}", why))
    return places


def _paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Each paragraph and each item of a list, with the line at which it begins."""
    text = _NO_PROSE.sub(lambda found: "\n" * found[0].count("\n"), markdown)
    begin, lines = 1, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        words = line.strip().lstrip("> ")
        item, is_prose = _LIST_ITEM.match(words), words and words[0] not in "|#<"
        if lines and (item or not is_prose):
            yield begin, " ".join(lines)
            lines = []
        if is_prose:
            begin = begin if lines else number
            lines.append(words[item.end() :] if item else words)


def _named(source: str) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


def find() -> dict[str, list[Place]]:
    """All that is wrong, by file and by class name."""
    found: dict[str, list[Place]] = {}
    classes: dict[str, list[str]] = {}
    for path in (path for room in ROOMS for path in sorted(Path(room).rglob("*.py"))):
        source = path.read_text()
        if vague := vague_names(source, path.as_posix()):
            found[path.as_posix()] = vague
        for name, place in class_names(source, path.as_posix()):
            classes.setdefault(name, []).append(place)
    for path in (path for each in DOCUMENTS for path in sorted(Path().glob(each))):
        if long := long_sentences(path.read_text(), path.as_posix()):
            found[path.as_posix()] = long
    for name, places in classes.items():
        if len(places) > 1:
            found[f"class {name}"] = [(each, f"{name} is the name of classes") for each in places]
    return found


def read_allowed(text: str) -> dict[str, int]:
    """``loaders/instrument/worker_hooks.py 3`` or ``class Watch 2``, a line each."""
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line)
    return {what: int(count) for what, count in pairs}


def main(arguments: list[str]) -> int:
    """Print each place beyond what is allowed; 1 when there is any."""
    found, allowed = find(), read_allowed(ALLOWED.read_text())
    counts = {what: len(places) for what, places in sorted(found.items())}
    if "--update" in arguments and sum(counts.values()) <= sum(allowed.values()):
        ALLOWED.write_text("".join(f"{what} {count}\n" for what, count in counts.items()))
        return 0
    worse = [what for what, count in counts.items() if count > allowed.get(what, 0)]
    fewer = "" if counts == allowed else "; the list can shrink, by --update"
    lines = [f"{at}: {why}" for what in worse for at, why in found[what]]
    print("\n".join(lines) or f"no new vague name or long sentence{fewer}")
    return bool(worse)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
