"""Name the orders of rows, from that of the files to one that is random over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeprof.errors import UsageError


@dataclass(frozen=True)
class Order:
    """An order of rows."""

    kind: Literal["none", "shards", "blocks", "buffer", "full"]
    """
    - *none*: as in the files, one after another;
    - *shards*: splits in a random order, the rows of each as stored;
    - *blocks*: as *shards*, with the rows of a decoded block in a random order;
    - *buffer*: splits in a random order, and rows by chance from a buffer of each worker;
    - *full*: any row after any other, each read where it is stored.
    """
    buffer_rows: int = 0
    """Rows that the buffer of a worker holds."""


_NAMED = {
    "none": Order("none"), "shards": Order("shards"), "blocks": Order("blocks"),
    "full": Order("full"),
}  # fmt: skip


def parse_order(shuffle: bool | str) -> Order:
    """Return the order that a user names.

    Args:
        shuffle: ``False`` is ``"none"``, ``True`` is ``"blocks"``; or a name, such as
            ``"buffer:10000"``.

    Returns:
        The order.

    Raises:
        UsageError: There is no such order.

    Examples:
        >>> parse_order("buffer:10000").buffer_rows
        10000
    """
    if isinstance(shuffle, bool):
        return _NAMED["blocks" if shuffle else "none"]
    if shuffle in _NAMED:
        return _NAMED[shuffle]
    name, _, rows = str(shuffle).partition(":")
    if name == "buffer" and rows.isdecimal() and int(rows) > 0:
        return Order("buffer", int(rows))
    raise UsageError(
        f"there is no order {shuffle!r}; name none, shards, blocks, full, or a buffer with its "
        "rows, such as buffer:10000"
    )
