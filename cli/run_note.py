"""Notes that processes of `pipeprof run` leave when they end: what each measured and saved."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from pipeprof.errors import OutputError
from pipeprof.storage.urls import join, redact

if TYPE_CHECKING:
    from pipeprof.model import JobPlace

NOTE = ".note.json"
"""Ending of the notes that followed processes leave for the first one."""
BEGUN = ".begun"
"""Ending of the empty files that mark followed processes of this host which have not ended."""
RANK_NOTE = "ended.json"
"""Name of the note in the folder of a rank. It is written last."""


@dataclass(frozen=True)
class Note:
    """What one process says of itself."""

    host: str
    process: int
    rank: int | None
    job_id: str | None
    folder: str
    """Where it saved, as an absolute path or a URL."""
    files: tuple[str, ...]
    """Names of what it saved there."""
    problems: tuple[str, ...]

    @classmethod
    def of(
        cls, place: JobPlace | None, folder: str, urls: Iterable[str], problems: Iterable[str]
    ) -> Note:
        """Return the note of this process, which saved ``urls`` in ``folder``."""
        names = tuple(url.rpartition("/")[2] for url in urls)
        rank, job_id = (place.rank, place.job_id) if place else (None, None)
        return cls(socket.gethostname(), os.getpid(), rank, job_id, folder, names, tuple(problems))

    @property
    def name(self) -> str:
        return f"process {self.process}" if self.rank is None else f"rank {self.rank}"

    @property
    def urls(self) -> list[str]:
        return [join(self.folder, name) for name in self.files]

    @property
    def profiles(self) -> list[str]:
        """URLs of the profiles, without their pages."""
        return [url for url in self.urls if url.endswith(".json")]

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def write(self, url: str) -> None:
        """Write the note to ``url``. Raises `OutputError`."""
        from pipeprof.storage.write import open_object

        with open_object(url) as sink:
            sink.write(self.encode())


def read_note(url: str) -> Note:
    """Read the note at ``url``. Raises `OutputError` for anything else."""
    from pipeprof.storage.write import read_object

    try:
        note = parse_note(read_object(url))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise OutputError(f"{redact(url)} is no note of pipeprof.") from None
    # the file system may have another name where it was written
    return replace(note, folder=url.rpartition("/")[0]) if url.endswith(RANK_NOTE) else note


def parse_note(data: bytes) -> Note:
    """Return the note that `Note.encode` wrote. Raises what Python raises for anything else."""
    given = json.loads(data)
    return Note(**given | {key: tuple(given[key]) for key in ("files", "problems")})


def make_scratch(scratch: str) -> None:
    """Make the folder for what processes leave for the first one, unless it exists."""
    os.makedirs(scratch, mode=0o700, exist_ok=True)


def leave_in_scratch(note: Note, scratch: str) -> None:
    """Leave ``note`` for the first process. Raises `OutputError`."""
    make_scratch(scratch)
    note.write(join(scratch, f"{note.host}-{note.process}{NOTE}"))


def in_order(notes: Iterable[Note]) -> list[Note]:
    """Return the ``notes`` of ranks in their order, and then those of other processes."""
    return sorted(notes, key=lambda note: (note.rank is None, note.rank or 0, note.process))
