"""Find the data files of a Lance table: a folder whose newest manifest names them.

TABLE/_versions/*.manifest    one for each version
TABLE/data/*.lance            the files of all versions

Only a table is read whose rows are those of its files. Where rows were deleted, or columns added,
renamed or dropped since, it is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeprof.errors import CorruptData, FormatError
from pipeprof.formats.lance.layout import MAGIC
from pipeprof.formats.lance.messages import Manifest, parse

VERSIONS, DATA = "_versions", "data"
_AGAIN = "Write it again, as by lance.write_dataset(lance.dataset(…).to_table(), …)."
_SUFFIX = ".manifest"
_INVERTED_DIGITS = 20
"""Names of so many digits count down from the largest 64-bit number."""
_END = struct.Struct("<Q2H4s")
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class LanceTable:
    """One version of a table."""

    files: tuple[str, ...]
    """Names of the files that hold its rows, in their order, below the folder `DATA`."""
    columns: tuple[str, ...]

    def check_columns(self, stored: Iterable[str]) -> None:
        """Raise `FormatError` unless the columns ``stored`` in its files are still the table's."""
        for name in stored:
            if name not in self.columns:
                raise FormatError(
                    f"the table has no column {name!r}, which its files have: it was renamed or "
                    f"dropped. {_AGAIN}"
                )


def newest(names: Sequence[str]) -> str | None:
    """Return the file name of the newest manifest; ``None`` where there is none.

    Examples:
        >>> newest(["1.manifest", "2.manifest"])
        '2.manifest'
    """
    versions = {_version(name): name for name in names}
    versions.pop(None, None)
    return versions[max(versions, key=lambda version: version or 0)] if versions else None


def _version(name: str) -> int | None:
    digits = name.removesuffix(_SUFFIX)
    if digits == name or not digits.isdigit():
        return None
    return 2**64 - 1 - int(digits) if len(digits) == _INVERTED_DIGITS else int(digits)


def parse_manifest(manifest: bytes) -> LanceTable:
    """Return the table that a manifest describes. Raises `CorruptData`, and `FormatError` where its
    files alone are not its rows."""
    if len(manifest) < _END.size or not manifest.endswith(MAGIC):
        raise CorruptData("it does not end as a manifest of Lance does: truncated?")
    at = _END.unpack(manifest[-_END.size :])[0]
    if at + _LENGTH.size > len(manifest):
        raise CorruptData("its end points outside of it; it is damaged.")
    begin = at + _LENGTH.size
    [length] = _LENGTH.unpack(manifest[at:begin])
    described = parse(Manifest, manifest[begin : begin + length], "the table's manifest")
    for fragment in described.fragments:
        if fragment.HasField("deletion_file"):
            raise FormatError(f"the table has deleted rows, which are still in its files. {_AGAIN}")
        if len(fragment.files) != 1 or fragment.files[0].HasField("base_id"):
            raise FormatError(
                f"rows of the table lie in several files each, or in another table's. {_AGAIN}"
            )
    return LanceTable(
        tuple(fragment.files[0].path for fragment in described.fragments),
        tuple(field.name for field in described.fields if field.parent_id < 0),
    )
