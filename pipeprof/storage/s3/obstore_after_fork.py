"""Load obstore so that it works in a forked process.

obstore starts one pool of threads per process, on first use. A fork, for example of a DataLoader's
worker, inherits the pool without its threads, and every request would wait for ever. A process
that inherited obstore therefore loads a copy of the library, which the linker and Python take for
a new one. This costs 0.03 s of CPU and about 16 MB once per process.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeprof.storage.errors import ErrorKind, Failure

_NATIVE = "obstore._obstore"


def obstore_of_this_process() -> Any:
    """Return the module obstore. Raises `Failure` where it is not installed or cannot be loaded."""
    try:
        return _load(os.getpid())
    except (ImportError, OSError, AttributeError):
        raise Failure(ErrorKind.ABSENT) from None


@cache
def _load(pid: int) -> ModuleType:
    existing = sys.modules.get(_NATIVE)  # inherited, or imported by the user, who keeps it
    if existing is None:
        import_module("obstore.store")
        return import_module("obstore")
    hidden = _remove_modules()
    try:
        _load_copy(Path(str(existing.__file__)), pid)
        import_module("obstore.store")
        return import_module("obstore")
    finally:
        _remove_modules()
        sys.modules.update(hidden)


def _remove_modules() -> dict[str, ModuleType]:
    """Remove obstore from `sys.modules`, and return what was removed."""
    names = [name for name in sys.modules if name.partition(".")[0] == "obstore"]
    return {name: sys.modules.pop(name) for name in names}


def _load_copy(library: Path, pid: int) -> None:
    """Import a copy of the native library, which is kept in memory."""
    copy = os.memfd_create("obstore", os.MFD_CLOEXEC)
    with open(copy, "wb") as file:
        file.write(library.read_bytes())
        file.flush()
        # the path names this process, because the linker compares paths before contents
        path = f"/proc/{pid}/fd/{copy}"
        loader = ExtensionFileLoader(_NATIVE, path)
        spec = spec_from_loader(_NATIVE, loader, origin=path)
        assert spec is not None
        native = module_from_spec(spec)
        sys.modules[_NATIVE] = native
        loader.exec_module(native)
