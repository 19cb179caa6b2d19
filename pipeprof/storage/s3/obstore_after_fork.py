"""obstore, with a runtime that lives in this process.

obstore has one runtime of threads per process, made on first use and kept for ever. A fork copies
it without its threads, and whatever asks it then waits for ever; DataLoaders fork. So a process
that has inherited obstore loads it a second time, from a copy, for the linker and for Python a
library that they have never seen. It costs 0.03 s of CPU and about 16 MB, once a process.
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
    """The module. Raises `Failure` where it is not to be had."""
    try:
        return _load(os.getpid())
    except (ImportError, OSError, AttributeError):
        raise Failure(ErrorKind.ABSENT) from None


@cache
def _load(pid: int) -> ModuleType:
    inherited = sys.modules.get(_NATIVE)  # or imported by the user: both go on as they are
    if inherited is None:
        import_module("obstore.store")
        return import_module("obstore")
    hidden = _taken_out()
    try:
        _load_copy(Path(str(inherited.__file__)), pid)
        import_module("obstore.store")
        return import_module("obstore")
    finally:
        _taken_out()
        sys.modules.update(hidden)


def _taken_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] == "obstore"]
    return {name: sys.modules.pop(name) for name in names}


def _load_copy(library: Path, pid: int) -> None:
    copy = os.memfd_create("obstore", os.MFD_CLOEXEC)
    with open(copy, "wb") as file:
        file.write(library.read_bytes())
        file.flush()
        # by a name of this process's own: the linker compares names before it looks into files
        path = f"/proc/{pid}/fd/{copy}"
        loader = ExtensionFileLoader(_NATIVE, path)
        spec = spec_from_loader(_NATIVE, loader, origin=path)
        assert spec is not None
        native = module_from_spec(spec)
        sys.modules[_NATIVE] = native
        loader.exec_module(native)
