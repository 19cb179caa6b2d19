"""Record reads through the Amazon S3 Connector for PyTorch as the stage `read`.

These are ``read`` and ``readinto`` of its readers, which its data sets hand out. A read of a whole
object is one request. A reader fetches ahead of smaller reads, whose requests are not counted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from functools import partial
from typing import Any

from pipeprof.measure.patches.recorded_calls import recorded_read
from pipeprof.measure.patches.replacing import (
    Patches,
    Replacement,
    Wrappers,
    wrapped_methods,
)


def _of_readers(module: Any) -> Iterator[Replacement]:
    part = partial(recorded_read, fewest=0)
    wrappers: Wrappers = {"read": _recorded_read_of_reader, "readinto": part}
    yield from wrapped_methods(module.S3Reader, wrappers)


def _recorded_read_of_reader(method: Any) -> Any:
    whole, part = recorded_read(method, one_request=True), recorded_read(method, fewest=0)

    @functools.wraps(method)
    def reading(reader: Any, *arguments: Any, **options: Any) -> Any:
        size = arguments[0] if arguments else options.get("size")
        is_part = isinstance(size, int) and size >= 0
        return (part if is_part else whole)(reader, *arguments, **options)

    return reading


PATCHES: Patches = {"s3torchconnector.s3reader.s3reader": _of_readers}
