"""Sections that the terminal's report words, taken down as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pipeprof.report.html import shapes
from pipeprof.report.html.words import word
from pipeprof.report.layout import WORST_STYLE, Column, Page, Word, are_bars


class Kept(Page):
    """A page of the terminal's that keeps blocks in place of lines."""

    def __init__(self) -> None:
        super().__init__(width=0, color=False)
        self.blocks: list[shapes.Block] = []

    def gap(self) -> None:
        pass

    def heading(self, title: str, note: str = "") -> None:
        self.blocks.append(shapes.Heading(title, note))

    def line(self, text: str, indent: int = 2) -> None:
        last = self.blocks[-1] if self.blocks else None
        if isinstance(last, shapes.Lines):
            self.blocks[-1] = shapes.Lines((*last.lines, text))
        else:
            self.blocks.append(shapes.Lines((text,)))

    def verdict(self, verdict: Word, headline: str, of: str = "") -> None:
        self.blocks.append(shapes.Said(verdict, headline, of))

    def pairs(self, rows: Iterable[tuple[str, str]], indent: int = 2) -> None:
        self.blocks.append(shapes.Pairs(tuple(rows)))

    def table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[str]],
        styles: Sequence[str] = (),
    ) -> None:
        """Without the bars that are drawn in characters."""
        cells = [tuple(row) for row in rows]
        kept = [n for n in range(len(columns)) if not are_bars([row[n] for row in cells])]
        titles = [block.title for block in self.blocks if isinstance(block, shapes.Heading)]
        self.blocks.append(
            shapes.Table(
                titles[-1] if titles else "",
                tuple(
                    shapes.Column(columns[n].title, right=columns[n].right, prose=columns[n].wraps)
                    for n in kept
                ),
                tuple(
                    shapes.Row(
                        tuple(_cell(row[n], first=n == 0) for n in kept),
                        "worst" if place < len(styles) and styles[place] == WORST_STYLE else "",
                    )
                    for place, row in enumerate(cells)
                ),
            )
        )

    def code(self, code: str) -> None:
        self.blocks.append(shapes.Code(tuple(code.expandtabs(4).splitlines())))


def kept(
    name: str, title: str, write: Callable[[Page], None], otherwise: str, heads: bool = False
) -> shapes.Section:
    """What ``write`` puts on a page, as a section; ``otherwise`` what is said if that is nothing.
    ``heads``: its lines open what stands below them."""
    page = Kept()
    write(page)
    blocks = list(page.blocks)
    note = ""
    if blocks and isinstance(blocks[0], shapes.Heading):
        first = blocks.pop(0)
        note = first.note if isinstance(first, shapes.Heading) else ""
    if heads:
        blocks = [head for block in blocks for head in _heads(block)]
    return shapes.Section(name, title, note, tuple(blocks) or (shapes.Lines((otherwise,)),))


def _heads(block: shapes.Block) -> list[shapes.Block]:
    if not isinstance(block, shapes.Lines):
        return [block]
    return [shapes.Heading(line) for line in block.lines]


def _cell(text: str, first: bool) -> shapes.Cell:
    name = text.strip()
    return shapes.Cell(name, word=word(name) if first else "", within=text.startswith("  "))
