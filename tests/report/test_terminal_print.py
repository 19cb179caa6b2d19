"""Printing a report: its colours, width and encoding follow the terminal."""

from __future__ import annotations

import io

import pytest

from pipeprof.report.document.build import full_report
from pipeprof.report.terminal.render import print_document
from pipeprof.report.text import to_ascii
from pipeprof.sizing.formulas import FORMULAS
from tests.comparisons import three_runs
from tests.report.full import ESCAPE, full_markdown, full_text, section
from tests.samples import sample_profile
from tests.sweep_samples import sample_sweep


class Terminal(io.TextIOWrapper):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, kind: type[io.TextIOWrapper], **settings: str) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    encoding = settings.pop("encoding", "utf-8")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    file = kind(io.BytesIO(), encoding=encoding)
    print_document(full_report(sample_profile()), file)
    raw = file.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode(encoding)


def test_a_terminal_gets_colour_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31mSTARVED" in printed(monkeypatch, Terminal)
    assert "\x1b" not in printed(monkeypatch, Terminal, NO_COLOR="1")
    assert "\x1b" not in printed(monkeypatch, Terminal, TERM="dumb")
    assert "\x1b" not in printed(monkeypatch, io.TextIOWrapper)


def test_a_page_is_as_wide_as_the_terminal_but_not_wider_than_100(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def widest(text: str) -> int:
        return max(map(len, ESCAPE.sub("", text).splitlines()))

    assert widest(printed(monkeypatch, Terminal, COLUMNS="84")) <= 84
    assert 84 < widest(printed(monkeypatch, Terminal, COLUMNS="240")) <= 100
    assert printed(monkeypatch, io.TextIOWrapper, COLUMNS="60") == full_text(sample_profile())


def test_an_encoding_without_blocks_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(monkeypatch, io.TextIOWrapper, encoding="ascii")
    assert "##########" in section(text, "What the accelerator waited for")
    assert "num_workers: 2 -> 4" in text
    assert "800 us" in text


def test_every_special_character_has_an_ascii_replacement() -> None:
    texts = [full_text(sample_profile()), full_text(sample_sweep()), full_text(three_runs())]
    texts += [
        full_markdown(sample_profile()),
        *(each.__doc__ or "" for each in FORMULAS.values()),
    ]
    assert not [told for told in map(to_ascii, texts) if not told.isascii() or "\\u" in told]
    assert to_ascii("⌈gpus / gpus per node⌉") == "ceil(gpus / gpus per node)"
