"""Save the profiles of a process of `pipeprof run`, on a disk or at a URL."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeprof.cli.run_note import RANK_NOTE, Note
from pipeprof.cli.run_ranks import send_to_rank_0
from pipeprof.errors import PipeprofError
from pipeprof.log import suppress_and_log
from pipeprof.measure.job_place import find_job_place
from pipeprof.storage.urls import is_local, join, local_path, redact

if TYPE_CHECKING:
    from pipeprof.cli.run_settings import RunSettings
    from pipeprof.model import JobPlace, Profile

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProfileFolder:
    """Where a process saves its profiles."""

    url: str
    """An absolute path, or a URL."""

    @classmethod
    def of(cls, out: str, place: JobPlace | None, followed: bool = False) -> ProfileFolder:
        """Return the folder of this process in ``out``, a path or a URL.

        A process with no place in a job saves in ``out`` itself. A rank has a folder in that of
        its host, and so has a process that the script started.
        """
        if place is None and not followed:
            return cls(out)
        name = f"process{os.getpid()}" if place is None else f"rank{place.rank}"
        return cls(join(out, f"{_file_name(socket.gethostname(), 'host')}/{name}"))

    def prepare(self, html: bool) -> None:
        """Do what cannot be done any more while Python exits: import modules, and start threads.

        Raises:
            UsageError: No file system serves the URL.
        """
        import pipeprof.storage.write
        import pipeprof.store

        if html:
            import pipeprof.report.document.build
            import pipeprof.report.html.page  # noqa: F401
        if not is_local(self.url):
            from pipeprof.storage.urls import filesystem

            filesystem(self.url)

    def save(self, profiles: Sequence[Profile], html: bool) -> Iterator[str]:
        """Save each profile, and its page with ``html``. Yields the name of each file that was
        written. Raises `OutputError`."""
        from pipeprof.store import dumps

        for profile, name in zip(profiles, _file_names(profiles), strict=True):
            yield self._write(f"{name}.json", dumps(profile))
            if html:
                from pipeprof.report.document.build import full_report
                from pipeprof.report.html.page import render_html

                yield self._write(f"{name}.html", render_html(full_report(profile)).encode())

    def _write(self, name: str, data: bytes) -> str:
        from pipeprof.storage.write import open_object

        url = join(self.url, name)
        with open_object(url) as sink:
            sink.write(data)
        return url


def save_and_note(
    settings: RunSettings, profiles: Sequence[Profile], problems: Sequence[str], followed: bool
) -> Note:
    """Save the profiles of this process, and return its note. A rank's note is saved after them.
    What could not be saved is among the problems of the note."""
    place = find_job_place()
    folder = ProfileFolder.of(settings.out, place, followed)
    files: list[str] = []
    failed: list[str] = []
    try:
        files.extend(folder.save(profiles, settings.html))
    except PipeprofError as error:
        failed = [str(error).rstrip(".")]
    note = Note.of(place, folder.url, files, [*problems, *failed])
    if place is not None and not failed:
        with suppress_and_log(_log, "a rank has left no note, or sent none"):
            # whoever finds it there knows the folder, whose URL may have a password
            replace(note, folder=redact(folder.url)).write(join(folder.url, RANK_NOTE))
            within = folder.url.removeprefix(settings.out).lstrip("/")
            send_to_rank_0(place, within, [*files, join(folder.url, RANK_NOTE)])
    return note


def absolute(out: str) -> str:
    """Return ``out`` so that it still names the same place when the script changes its folder."""
    return local_path(out) if is_local(out) else out


def shown(url: str, out: str) -> str:
    """Return the file ``url`` below ``out`` as messages show it: from the folder as the user wrote
    it, and without a password."""
    within = url.removeprefix(absolute(out))
    return redact(join(out, within.lstrip("/")) if within != url else url)


def _file_names(profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield a unique file name for each profile, such as ``train.py-42``."""
    used: set[str] = set()
    for profile in profiles:
        plain = _file_name(profile.name, "loader")
        name, count = plain, 1
        while name in used:
            count += 1
            name = f"{plain}-{count}"
        used.add(name)
        yield name


def _file_name(text: str, otherwise: str) -> str:
    return re.sub(r"[^\w.]+", "-", text).strip("-.")[-150:] or otherwise
