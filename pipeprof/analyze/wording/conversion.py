"""What a sweep says of converting a data set: what to do, and what sizes of files brought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.units import format_binary


def conversion_advice(code: str, figures: Figures, gain: object) -> str:
    """Whether to convert, by what the chosen copy has gained."""
    return fill(_ADVICE[code], figures, gain)


def same_layouts(figures: Figures, sizes: Sequence[int]) -> str:
    """Of sizes of row groups, or of files, that are as fast."""
    text = f"{_OF_LAYOUT} {{sizes}} make no {_SHOWN}."
    return fill(text, {**figures, "sizes": " or ".join(map(format_binary, sizes))})


def other_layout(figures: Figures) -> str:
    """Of the fastest and the slowest of several sizes."""
    return fill(
        f"{_OF_LAYOUT} {{most:binary}} give {_SPEED} {{least:binary}} {_INTERVAL}.", figures
    )


def name_without_size(name: str, size: int) -> str:
    """The ``name`` of a copy but for its row groups, or files, of this size."""
    own = format_binary(size)
    return ", ".join(word for word in name.split(", ") if not word.startswith(f"{own} "))


_SHOWN: Final = "difference that this data can show"
_SPEED: Final = "{speed:times} the samples/s of"
_INTERVAL: Final = "(95 %: {speed_interval[0]:times} to {speed_interval[1]:times})"
_TAKES: Final = "takes {storage:times} the bytes on storage« and {cpu:times} the CPU a sample»."
_OF_LAYOUT: Final = "{name} on {storage}: {size} of"
_ADVICE: Final = {
    "convert": f"{{name}} gives {_SPEED} {{format}} as it is {_INTERVAL}, and {_TAKES}",
    "as-fast": "«{fed:if}{format} as it is feeds the accelerator already, and »no format is faster "
    f"than «{{fed:if}}it»«{{fed:unless}}{{format}} as it is» by any {_SHOWN}; {{name}} {_TAKES}",
    "keep": "keep {format} as it is: what was tried is slower; the fastest, {name}, gives "
    f"{{speed:times}} its samples/s and {_TAKES}",
}
