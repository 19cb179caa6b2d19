"""Wait for what the other ranks of a job save, at the end of rank 0 under a launcher."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from pipeprof.cli.run_note import RANK_NOTE, Note, read_note
from pipeprof.errors import PipeprofError
from pipeprof.integrations.rank_store import RankStore
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.model import JobPlace
from pipeprof.storage.urls import is_local, join, local_path
from pipeprof.storage.write import objects_below, open_object, read_object

_log = logging.getLogger(__name__)

_IDLE_S = 15.0
"""How long to wait after the last rank has come."""
_PAUSE_S, _REMOTE_PAUSE_S = 0.1, 1.0
"""Time between two looks into a folder, and into a bucket."""
_MOST_RANKS = 256
"""Most ranks of a job that is reported on at its end; each takes some milliseconds."""
FOLDER = "folder"
"""Key under which a process sends the name of its folder."""


def is_large(place: JobPlace) -> bool:
    """Return whether the job has more ranks than are waited for, as all its nodes are kept then."""
    return (place.world_size or 0) > _MOST_RANKS


def has_other_nodes(place: JobPlace) -> bool:
    """Return whether ranks of the job run on other nodes, or may do so."""
    return place.local_world_size is None or place.local_world_size != place.world_size


class OtherRanks:
    """What other ranks of this job save in a folder from now on."""

    def __init__(self, out: str, idle_s: float = _IDLE_S) -> None:
        """Look in ``out``, a path or a URL. After ``idle_s`` without another rank, `wait` stops
        waiting."""
        self._out, self._idle_s = out, idle_s
        self._earlier = self._notes()
        self._read: dict[str, Note] = {}
        self._waited = False

    def now(self) -> list[Note]:
        """Return the notes of the ranks that have ended by now."""
        for url, stamp in self._notes().items():
            if url not in self._read and self._earlier.get(url) != stamp:
                with suppress(PipeprofError):  # it may be half a file, or another's
                    self._read[url] = read_note(url)
        return [*self._read.values()]

    def wait(self, place: JobPlace) -> list[Note]:
        """Return the notes of the other ranks when all have ended. ``place`` is that of rank 0.

        It does not wait for ranks of this host that are dead. For those of other hosts it stops
        waiting when none has come for some seconds. In a large job it does not wait at all.
        """
        if not self._waited and not is_large(place):
            self._waited = True
            self._wait(place)
        return [note for note in self.now() if note.rank != place.rank]

    def _wait(self, place: JobPlace) -> None:
        others = set(range(place.world_size or 1)) - {place.rank}
        alone = not has_other_nodes(place)
        store = None if alone or not is_local(self._out) else RankStore.of_launcher(place)
        last, count = time.monotonic(), 0
        while True:
            ended = alone and not any(_relatives())
            notes = self.now()  # after looking for live ones: a rank writes before it ends
            missing = others - {note.rank for note in notes}
            if store is not None:
                for rank in missing:
                    self._receive(store, rank)
            if len(notes) > count:
                last, count = time.monotonic(), len(notes)
            if ended or not missing or time.monotonic() - last > self._idle_s:
                return
            time.sleep(_PAUSE_S if is_local(self._out) else _REMOTE_PAUSE_S)

    def _receive(self, store: RankStore, rank: int) -> None:
        """Save what ``rank`` has sent, as it did itself."""
        files = store.receive(rank)
        if files is None:
            return
        with suppress_and_log(_log, f"what rank {rank} sent is not saved"):
            note = files.pop(RANK_NOTE)
            save_sent({**files, RANK_NOTE: note}, self._out)  # the note last

    def _notes(self) -> dict[str, tuple[object, ...]]:
        """Return the stamps of all notes in the folder, by their URLs."""
        if is_local(self._out) and not os.path.isdir(local_path(self._out)):
            return {}  # without importing fsspec, which takes time
        try:
            return objects_below(self._out, f"*/rank*/{RANK_NOTE}")
        except PipeprofError as error:
            log_caught(_log, error, "the profiles of other ranks are not found")
            return {}


def save_sent(files: Mapping[str, bytes], out: str) -> str:
    """Save what another process has sent below ``out``, as it did itself, and return its folder.
    Raises `OutputError`."""
    folder = join(out, files[FOLDER].decode())
    for name, data in files.items():
        if name != FOLDER:
            with open_object(join(folder, name)) as sink:
                sink.write(data)
    return folder


def send_to_rank_0(place: JobPlace, folder: str, urls: Iterable[str]) -> None:
    """Send the files ``urls``, the note among them, to rank 0 if that runs on another node.
    ``folder`` is the one within that of the job."""
    if place.node is None or place.node == 0 or not all(map(is_local, urls)):
        return
    store = RankStore.of_launcher(place)
    if store is not None:
        files = {url.rpartition("/")[2]: read_object(url) for url in urls}
        store.send({**files, FOLDER: folder.encode()})


def _relatives(root: str = "/proc") -> Iterator[int]:
    """Yield the live processes that this one, or its parent, has started."""
    parents = {os.getpid(), os.getppid()} - {1}
    for name in filter(str.isdecimal, os.listdir(root)):
        with suppress(OSError, ValueError):
            with open(f"{root}/{name}/stat", encoding="utf-8", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
            if int(parent) in parents and int(name) != os.getpid() and state not in "ZX":
                yield int(name)
