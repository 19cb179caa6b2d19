"""Texts of a sweep about converting a data set: whether to convert, and which file sizes to use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.units import format_binary


def conversion_advice(code: str, figures: Figures, gain: object) -> str:
    """Say whether to convert. ``gain`` is the `Gain` of the chosen copy."""
    return fill(_ADVICE[code], figures, gain)


def same_layouts(figures: Figures, sizes: Sequence[int]) -> str:
    """Say that these sizes of row groups or files, in bytes, are equally fast."""
    text = f"{_OF_LAYOUT} {{sizes}} make no {_SHOWN}."
    return fill(text, {**figures, "sizes": " or ".join(map(format_binary, sizes))})


def other_layout(figures: Figures) -> str:
    """Compare the fastest size of row groups or files with the slowest."""
    return fill(
        f"{_OF_LAYOUT} {{most:binary}} give {_SPEED} {{least:binary}} {_INTERVAL}.", figures
    )


def name_without_size(name: str, size: int) -> str:
    """Return the ``name`` of a copy without its part about row groups or files of this size."""
    own = format_binary(size)
    return ", ".join(word for word in name.split(", ") if not word.startswith(f"{own} "))


_SHOWN: Final = "difference that this data can show"
_SPEED: Final = "{speed:times} the samples/s of"
_INTERVAL: Final = "(95 %: {speed_interval[0]:times} to {speed_interval[1]:times})"
_COSTS: Final = "takes {storage:times} the bytes on storage« and {cpu:times} the CPU a sample»."
_OF_LAYOUT: Final = "{name} on {storage}: {size} of"
_ADVICE: Final = {
    "convert": f"{{name}} gives {_SPEED} {{first}} {_INTERVAL}, and {_COSTS}",
    "reader": f"{{name}} gives {_SPEED} {{first}} {_INTERVAL}, and no copy is faster by any "
    f"{_SHOWN}.",
    "as-fast": "«{fed:if}{first} feeds the accelerator already, and »no format is faster "
    f"than «{{fed:if}}it»«{{fed:unless}}{{first}}» by any {_SHOWN}; {{name}} {_COSTS}",
    "keep": "keep {first}: the copies are slower; the fastest, {name}, gives "
    f"{{speed:times}} its samples/s and {_COSTS}",
    "out-of-reach": "keep {first}: none of the copies gives more than {speed_interval[1]:times} "
    "its samples/s (95 %).",
}
