"""Cut a tar archive, which comes block by block, into its members."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Buffer

BLOCK = tarfile.BLOCKSIZE
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_PAX_RECORD = re.compile(rb"\d+ ([^=]+)=")
_MOST_BYTES = 2**31


@dataclass(frozen=True)
class ArchiveFile:
    name: str
    data: bytes


class Members:
    """Takes blocks of an archive, and gives the regular files in it. All methods raise
    `CorruptData`."""

    def __init__(self, at: int = 0) -> None:
        """Begin with the member at byte ``at`` of the archive."""
        self._rest = bytearray()
        self._at = at
        """Where in the archive ``_rest`` begins."""
        self._wanted = 0
        """Bytes of ``_rest`` from which its first member is complete."""
        self._extended: dict[str, str] = {}
        """What an earlier member says of the next one."""
        self._ended = False

    def push(self, block: Buffer) -> Iterator[ArchiveFile]:
        """Append ``block``, and yield the files that are complete then."""
        self._rest += block
        if len(self._rest) < self._wanted:
            return
        data, begin = bytes(self._rest), 0
        while len(data) - begin >= BLOCK:
            header = data[begin : begin + BLOCK]
            if self._ended or not header.strip(b"\0"):
                self._check_end(header)
                begin += BLOCK
                continue
            info = self._parse(header, begin)
            first = begin + BLOCK
            end = first + -(-info.size // BLOCK) * BLOCK
            if end > len(data):
                self._wanted = end - begin
                break
            content = data[first : first + info.size]
            begin, self._wanted = end, 0
            if info.type in _FILES:
                yield ArchiveFile(self._extended.pop("path", info.name), content)
                self._extended.clear()
            else:
                self._note(info.type, content)
        del self._rest[:begin]
        self._at += begin

    def finish_part(self) -> None:
        """Raise `CorruptData` if a part of the archive ends within a member."""
        if self._rest:
            raise CorruptData(f"the member at byte {self._at} ends behind the part that was read.")

    def finish(self) -> None:
        """Raise `CorruptData` if the archive lacks its end."""
        if self._rest or not self._ended:
            raise CorruptData(
                f"it ends at byte {self._at + len(self._rest)} without the end mark of an archive: "
                "truncated, or still being written."
            )

    def _parse(self, header: bytes, begin: int) -> tarfile.TarInfo:
        try:
            info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise CorruptData(
                f"the header at byte {self._at + begin} is damaged ({error})."
            ) from None
        info.size = int(self._extended.get("size", info.size))
        if info.issym() or info.islnk() or info.isdir():
            info.size = 0
        if not 0 <= info.size < _MOST_BYTES:
            raise CorruptData(
                f"the header at byte {self._at + begin} says its file has {info.size} bytes."
            )
        return info

    def _note(self, kind: bytes, content: bytes) -> None:
        """Keep what the member says of the next one. Links and folders say nothing."""
        if kind == tarfile.GNUTYPE_LONGNAME:
            self._extended["path"] = _text(content.rstrip(b"\0"))
        elif kind in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
            self._extended |= _pax_records(content, self._at)
        elif kind == tarfile.GNUTYPE_SPARSE:
            raise CorruptData(f"it holds a sparse file, near byte {self._at}, which is not read.")
        elif kind not in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            self._extended.clear()

    def _check_end(self, header: bytes) -> None:
        self._ended = True
        if header.strip(b"\0"):
            raise CorruptData(f"other bytes follow the end of the archive, near byte {self._at}.")


def _pax_records(content: bytes, near: int) -> dict[str, str]:
    """Return the ``path`` and ``size`` that records such as ``"18 path=a/b.jpg\\n"`` hold."""
    found, at = {}, 0
    while at < len(content) and (match := _PAX_RECORD.match(content, at)):
        length = int(content[at : content.index(b" ", at)])
        name, value = _text(match[1]), _text(content[match.end() : at + length - 1])
        if name == "path" or (name == "size" and value.isdecimal()):
            found[name] = value
        at += max(length, 1)
    if at != len(content):
        raise CorruptData(f"an extended header near byte {near} is damaged.")
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
