"""Profile the workers of Ray's tasks and actors under `pipeprof run`, with no edit of the script.

Workers of a cluster that the script starts inherit the variables by which other processes are
followed. Those of a cluster that runs already get them by the runtime environment of the job. Ray
kills them when their driver ends, so the driver has them save before that, and waits.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from importlib import import_module
from threading import Thread
from typing import Any

from pipeprof.cli.run_note import RANK_NOTE, Note, leave_in_scratch, parse_note
from pipeprof.cli.run_ranks import FOLDER, save_sent
from pipeprof.cli.run_settings import RunSettings
from pipeprof.integrations.ray_store import RayStore
from pipeprof.log import log_caught, say, suppress_and_log
from pipeprof.measure.import_hook import when_imported
from pipeprof.storage.urls import is_local
from pipeprof.units import counted

_log = logging.getLogger(__name__)

_LOOK_S = 0.5
"""Time between two looks of a worker for the end of its driver. Each takes less than 1 ms."""
_IDLE_S = 10.0
"""How long the driver waits after the last worker has saved. Some may have been killed."""
_HOOK = "RAY_RUNTIME_ENV_HOOK"
"""Ray's variable that names a function which returns the runtime environment of a job."""


def follow_workers(settings: RunSettings) -> None:
    """Once this process imports Ray, have the workers that it uses profiled as a driver."""
    when_imported("ray", _Driver(settings).hook)


class _Driver:
    """This process, if its script uses Ray."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings, self._process = settings, os.getpid()
        self._other_hook: str | None = None
        self._ray: Any = None

    def hook(self, ray: Any) -> None:
        with suppress_and_log(_log, "the workers of Ray are not profiled"):
            self._ray = ray
            self._ray.init = self._wrap_init(self._ray.init)
            self._ray.shutdown = self._wrap_shutdown(self._ray.shutdown)
            atexit.register(self._collect)  # runs before Ray's own handler, which is older
            _drivers[:] = [self]

    def _wrap_init(self, init: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(init)
        def hooked_init(address: str | None = None, **options: Any) -> Any:
            with self._variables_in_runtime_env(address):
                return init(address, **options)

        return hooked_init

    def _wrap_shutdown(self, shutdown: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(shutdown)
        def hooked_shutdown(*args: Any, **options: Any) -> Any:
            self._collect()
            return shutdown(*args, **options)

        return hooked_shutdown

    @contextmanager
    def _variables_in_runtime_env(self, address: str | None) -> Iterator[None]:
        """Have Ray ask `add_variables` for the runtime environment of the job, if the cluster runs
        already. The workers of another one inherit the variables."""
        if not _joins_cluster(address):
            yield
            return
        self._other_hook = os.environ.get(_HOOK)
        os.environ[_HOOK] = f"{__name__}.{add_variables.__name__}"
        try:
            yield
        finally:
            os.environ.pop(_HOOK)
            if self._other_hook is not None:
                os.environ[_HOOK] = self._other_hook

    def runtime_env(self, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the runtime environment of the job: the one that is ``given``, as a hook of the
        user changes it, with the variables by which a process is followed."""
        if self._other_hook is not None:
            module, _, name = self._other_hook.rpartition(".")
            given = getattr(import_module(module), name)(given)
        with suppress_and_log(_log, "the workers of Ray are not profiled"):
            # Ray puts there what the variable is on the node
            variables = {"PYTHONPATH": "${PYTHONPATH}"} | (given or {}).get("env_vars", {})
            self._settings.hand_on(variables)
            return {**(given or {}), "env_vars": variables}
        return given

    def _collect(self) -> None:
        if os.getpid() == self._process:
            with suppress_and_log(_log, "the profiles of Ray's workers may be missing"):
                if self._ray.is_initialized():
                    _collect_profiles(RayStore(_run(self._settings)), self._settings)


_drivers: list[_Driver] = []
"""That of this process, for `add_variables`."""


def add_variables(runtime_env: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the runtime environment in which processes are followed. Ray calls this."""
    return _drivers[0].runtime_env(runtime_env)


def _joins_cluster(address: str | None) -> bool:
    """Return whether `ray.init` would connect to a cluster that runs already."""
    try:
        services: Any = import_module("ray._private.services")
        services.find_gcs_addresses.cache_clear()
        return services.canonicalize_bootstrap_address(address, None) is not None
    except Exception as error:  # `ray.init` raises it, too, unless Ray has changed
        log_caught(_log, error, "workers of a cluster that runs already are not profiled")
        return False


def _collect_profiles(store: RayStore, settings: RunSettings) -> None:
    """Have the workers save, and wait for each that may still do so."""
    if not store.begun():
        return
    store.announce_end()
    received, last = set[str](), time.monotonic()
    while waiting := {each for each in store.begun() - received if _may_live(each)}:
        ended = waiting & store.ended()
        for worker in ended:
            _receive(store.files(worker), settings)
        received |= ended
        last = time.monotonic() if ended else last
        if time.monotonic() - last > _IDLE_S:
            say(f"{counted(len(waiting), 'worker')} of Ray did not answer, and left no profile.")
            break
        time.sleep(0 if ended else 0.05)
    store.clear()


def _may_live(worker: str) -> bool:
    """Return False for a process of this host that has ended."""
    host, _, process = worker.rpartition("/")
    return host != socket.gethostname() or os.path.exists(f"/proc/{process}")


def _receive(files: dict[str, bytes], settings: RunSettings) -> None:
    """Save what a worker of another host has sent, as it did itself."""
    if not files:
        return
    note = parse_note(files.pop(RANK_NOTE))
    leave_in_scratch(replace(note, folder=save_sent(files, settings.out)), settings.scratch)


def save_before_ray_kills(
    settings: RunSettings, leave: Callable[[], None]
) -> Callable[[Note | None], None]:
    """In a worker of Ray, call ``leave`` when the driver is about to end. Return what is to be
    called with the note of this process once it has saved."""
    store = RayStore.of_worker(_run(settings))
    if store is None:
        return lambda note: None
    with suppress_and_log(_log, "if Ray kills this process, its profiles are lost"):
        store.begin()
        Thread(target=_leave_at_end, args=(store, leave), daemon=True, name="pipeprof-ray").start()
    return lambda note: _send(store, note, settings)


def _leave_at_end(store: RayStore, leave: Callable[[], None]) -> None:
    with suppress_and_log(_log, "Ray is killing this process before its driver ends"):
        while not store.is_ending():
            time.sleep(_LOOK_S)
        leave()


def _send(store: RayStore, note: Note | None, settings: RunSettings) -> None:
    """Tell the driver that this worker has saved, with its files if they are on another host."""
    files: dict[str, bytes] = {}
    if note is not None and note.host != settings.host and is_local(settings.out):
        from pipeprof.storage.write import read_object

        files = {name: read_object(url) for name, url in zip(note.files, note.urls, strict=True)}
        folder = note.folder.removeprefix(settings.out).lstrip("/")
        files |= {RANK_NOTE: note.encode(), FOLDER: folder.encode()}
    store.end(files)


def _run(settings: RunSettings) -> str:
    return os.path.basename(settings.scratch)
