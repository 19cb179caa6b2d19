"""The index of an archive, which DALI's ``wds2idx`` writes next to it.

    v1.2 2
    jpg 1536 4096 17.jpg cls 6144 2 17.cls
    jpg 7168 512 18.jpg

Below the version and the number of samples there is a line a sample. For each file it has the
extension, the offset of the data, the size and, from version 1.2 on, the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Split
from pipeprof.formats.webdataset.members import BLOCK

_WORDS = {b"v1.1": 3, b"v1.2": 4}
"""Words for each file, by the version."""


def indexed_splits(index: bytes, size: int, split_bytes: int) -> tuple[Split, ...]:
    """Return runs of samples of an archive of ``size`` bytes, of about ``split_bytes`` each and at
    least one sample. Raises `CorruptData` for an index that does not fit the archive."""
    return tuple(_runs(_sample_ends(index, size), split_bytes))


def _sample_ends(index: bytes, size: int) -> list[int]:
    """Return where each sample ends in the archive. The next one begins there."""
    head, _, rest = index.partition(b"\n")
    version, _, count = head.partition(b" ")
    lines = rest.splitlines()
    if version not in _WORDS or not count.isdigit() or int(count) != len(lines):
        raise CorruptData(
            "it does not begin as an index of wds2idx does, or has another number of samples."
        )
    ends = [_sample_end(line.split(b" "), _WORDS[version]) for line in lines]
    if ends != sorted(set(ends)) or not all(0 < end <= size for end in ends):
        raise CorruptData("it is the index of another archive, as its offsets do not fit.")
    return ends


def _sample_end(words: Sequence[bytes], words_of_file: int) -> int:
    last = words[-words_of_file:]
    if len(words) % words_of_file or not (last[1].isdigit() and last[2].isdigit()):
        raise CorruptData("a line is not files with their offsets and sizes.")
    return -(-(int(last[1]) + int(last[2])) // BLOCK) * BLOCK


def _runs(ends: Sequence[int], split_bytes: int) -> Iterator[Split]:
    start, first = 0, 0
    for number, end in enumerate(ends):
        after = ends[number + 1] if number + 1 < len(ends) else None
        if after is None or 0 < split_bytes < after - start:
            yield Split(start, end, number + 1 - first, ((start, end - start),))
            start, first = end, number + 1
