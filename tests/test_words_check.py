"""`make lint` rejects vague names, and vague or long sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.sentences import of_markdown, of_python
from scripts.words_check import (
    MOST_WORDS,
    class_names,
    hard_sentences,
    main,
    read_allowed,
    vague_names,
)

GIVES = (
    "class OnTheWay:\n    def goes_on(self, seen):\n        told = seen\n        told = told.way\n"
)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a package with a vague name that the list allows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "pipeprof").mkdir()
    (tmp_path / "pipeprof/old.py").write_text("def told(): ...\n")
    (tmp_path / "scripts/words_allowed.txt").write_text("pipeprof/old.py 1\n")
    return tmp_path


def test_all_given_names_are_checked_once_and_those_of_others_are_not() -> None:
    places = [place for place, _ in vague_names(GIVES, "pipeprof/crew.py")]
    assert places == [f"pipeprof/crew.py:{line}" for line in (1, 1, 2, 2, 3)]


@pytest.mark.parametrize("name", ["gateway", "always", "dearth", "Overgoing"])
def test_a_word_is_a_whole_word(name: str) -> None:
    assert not vague_names(f"def {name}(): ...", "pipeprof/plain.py")


def test_a_private_class_may_share_its_name() -> None:
    assert class_names("class _Rows: ...\nclass Rows: ...", "a.py") == [("Rows", "a.py:2")]


LONG = "word " * MOST_WORDS + "end."


@pytest.mark.parametrize(
    "markdown",
    [
        "A sentence ends here. " * MOST_WORDS,
        "pyarrow is a word, and a sentence may begin with it. " * MOST_WORDS,
        f"![{LONG}](picture.png)",
        f"It runs `{LONG}` and [a link]({LONG.replace(' ', '/')}) is one.",
        f"```text\n{LONG}\n```",
        f"- item\n\n  ```sh\n  {LONG}\n  ```",
        f"| {LONG} |\n|---|",
        f"# {LONG}",
        "- an item\n- another\n" * MOST_WORDS,
    ],
)
def test_short_sentences_code_tables_and_headings_pass(markdown: str) -> None:
    assert not hard_sentences(of_markdown(markdown), "a.md")


@pytest.mark.parametrize("before", ["", "# Heading\n\n", "```\ncode\n```\n", "- ", "> "])
def test_a_long_sentence_is_named_with_its_line(before: str) -> None:
    (found,) = hard_sentences(of_markdown(before + LONG.replace(" ", "\n  ", 3)), "a.md")
    assert found[0] == f"a.md:{before.count(chr(10)) + 1}"
    assert found[1].startswith(f"{MOST_WORDS + 1} words")


@pytest.mark.parametrize(
    "python",
    [
        f'"""{LONG}"""',
        f'def f():\n    """One.\n\n    Args:\n        x: {LONG}\n    """',
        f'raise ValueError(f"{{name}} {LONG}")',
        f"x = 1  # {LONG}",
        "\n".join(f"# {word}" for word in LONG.split()),
        '"""It goes on."""',
    ],
)
def test_a_docstring_a_message_or_a_comment_is_read_too(python: str) -> None:
    assert len(hard_sentences(of_python(python), "a.py")) == 1


@pytest.mark.parametrize(
    "python",
    [
        '"""A sentence ends here. A second one begins."""\n' * MOST_WORDS,
        f'"""Does it.\n\nExamples:\n    >>> {LONG}\n"""',
        '"""Does it.\n\nArgs:\n' + "    x: A few words\n" * MOST_WORDS + '"""',
        "x = 1  # a few words\n" + "\n" * 2 + "# and others\n",
        "goes_on['told']",
    ],
)
def test_short_sentences_of_python_pass(python: str) -> None:
    assert not hard_sentences(of_python(python), "a.py")


def test_a_new_long_sentence_of_the_documents_is_named(
    house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (house / "docs/guides").mkdir(parents=True)
    (house / "docs/guides/new.md").write_text(f"Short, e.g. this. {LONG}\n")
    assert main([]) == 1
    assert capsys.readouterr().out.startswith("docs/guides/new.md:1: 31 words")


def test_what_is_allowed_passes(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0


def test_one_more_is_named_with_its_place(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (house / "pipeprof/new.py").write_text("\ndef patience(): ...\n")
    assert main([]) == 1
    assert capsys.readouterr().out.startswith("pipeprof/new.py:2: patience")


def test_a_second_class_of_a_name_is_named(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for module in ("one", "two"):
        (house / f"pipeprof/{module}.py").write_text("class Rows: ...\n")
    assert main([]) == 1
    assert "pipeprof/two.py:1: Rows" in capsys.readouterr().out


def test_the_list_shrinks_with_a_rename_and_never_grows(house: Path) -> None:
    allowed = house / "scripts/words_allowed.txt"
    (house / "pipeprof/old.py").write_text("def told(): ...\ndef seen(): ...\n")
    assert main(["--update"]) == 1
    (house / "pipeprof/old.py").write_text("def reported(): ...\n")
    assert main(["--update"]) == 0
    assert read_allowed(allowed.read_text()) == {}


def test_a_file_may_move(house: Path) -> None:
    (house / "pipeprof/old.py").rename(house / "pipeprof/moved.py")
    assert main([]) == 1
    assert main(["--update"]) == 0
    assert main([]) == 0
