"""Run a script as `__main__`, as Python itself does, and report how it ended."""

from __future__ import annotations

import builtins
import io
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from types import CodeType, ModuleType, TracebackType
from typing import Any

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.log import log_caught

_log = logging.getLogger(__name__)

_THIS_FILE = os.path.abspath(__file__)
_PACKAGE = os.path.dirname(os.path.dirname(_THIS_FILE))
_IMPORT_HOOK = os.path.join(_PACKAGE, "measure", "import_hook.py")
_HIDDEN_PATHS = (
    *(_THIS_FILE, _IMPORT_HOOK),
    *(os.path.join(_PACKAGE, "loaders", room, "") for room in ("instrument", "autopatch", "live")),
)
"""Files and folders of pipeprof whose frames are removed from the script's tracebacks."""


@dataclass(frozen=True)
class Program:
    """A script or module to run, of which no code has run yet."""

    name: str
    """Name as the user wrote it."""
    path: str | None
    """Path of the script; ``None`` for a module, which is located later."""
    folder: str
    """Folder of the script, or the folder in which a module is searched first."""


@dataclass(frozen=True)
class Ending:
    """How a script ended."""

    code: Any
    """Argument for `sys.exit`."""
    failure: str | None = None
    """Predicate such as ``"raised ValueError"``; ``None`` when the script succeeded."""
    interrupted: bool = False


def find_program(name: str, is_module: bool) -> Program:
    """Locate a script or module. The errors have Python's exit codes: `UsageError` 2, and
    `PipeprofError` 1."""
    if is_module:
        return Program(name, None, os.getcwd())
    path = os.path.abspath(name)
    if os.path.isdir(path):
        raise PipeprofError(f"{name} is a folder; run a module with -m, or name a script.")
    try:
        io.open_code(path).close()
    except FileNotFoundError:
        raise UsageError(f"{name} does not exist; a module is run with -m.") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from None
    return Program(name, path, os.path.dirname(os.path.realpath(path)))


def run_program(program: Program, arguments: Sequence[str]) -> Ending:
    """Run ``program`` to its end. An exception is printed as Python prints it.

    Raises `PipeprofError` when a module cannot be found.
    """
    raised: BaseException
    try:
        main, code = _prepare_main(program, arguments)
        exec(code, vars(main))
    except _NotFound as error:
        raise PipeprofError(str(error)) from None
    except BaseException as error:
        log_caught(_log, error, "the script has ended")
        raised = error
    else:
        return Ending(0)
    # outside the handler, so that an error of the script's excepthook is not chained to this one
    return _ending_of(raised)


class _NotFound(Exception):
    """Raised when a module does not exist or cannot be run. No script can raise this."""


def _prepare_main(program: Program, arguments: Sequence[str]) -> tuple[ModuleType, CodeType]:
    """Set `__main__`, `sys.argv` and `sys.path` as the script expects them.

    They stay so until the process ends, because exit handlers, pickles and spawned workers use
    them.
    """
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
        sys.path[0] = program.folder
    sys.argv[:] = [program.name if program.path else "-m", *arguments]
    main = ModuleType("__main__")
    vars(main).update(__builtins__=builtins, __annotations__={}, __cached__=None)
    sys.modules["__main__"] = main
    if "__mp_main__" in sys.modules:  # the name that multiprocessing uses
        sys.modules["__mp_main__"] = main
    return main, _compile_script(program.path, main) if program.path else _compile_module(
        program.name, main
    )


def _compile_script(path: str, main: ModuleType) -> CodeType:
    main.__file__, main.__loader__ = path, SourceFileLoader("__main__", path)
    main.__package__ = None
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _compile_module(name: str, main: ModuleType) -> CodeType:
    spec = _find_module(name)
    loader: Any = spec.loader
    code: CodeType | None = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise _NotFound(f"the module {spec.name} cannot be run: it holds no Python code.")
    vars(main).update(
        __file__=spec.origin,
        __loader__=loader,
        __package__=spec.parent,
        __spec__=spec,
        __cached__=spec.cached,
    )
    sys.argv[0] = spec.origin or name
    return code


def _find_module(name: str) -> ModuleSpec:
    """Return the spec of a module, or of the ``__main__`` of a package. Parents are imported."""
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name += ".__main__"
            spec = find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        # only these, as in Python itself: other errors come from the user's code
        raise _NotFound(f"the module {name} cannot be found: {error}.") from None
    if spec is None:
        raise _NotFound(f"the module {name} does not exist.")
    return spec


def _ending_of(error: BaseException) -> Ending:
    strip_own_frames(error)
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            return Ending(error.code)
        number = error.code if isinstance(error.code, int) else 1
        return Ending(error.code, f"ended with exit code {number & 0xFF}")
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as exit_:
        return Ending(exit_.code, f"raised {type(error).__name__}")
    except BaseException as broken:
        log_caught(_log, broken, "the script's own excepthook failed")
        strip_own_frames(broken)
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        return Ending(130, "was interrupted", interrupted=True)
    return Ending(1, f"raised {type(error).__name__}")


def strip_own_frames(error: BaseException) -> None:
    """Remove frames of pipeprof from the tracebacks of ``error`` and of the errors behind it."""
    visited: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:
        each = chain.pop()
        if each is None or id(each) in visited:
            continue
        visited.add(id(each))
        each.__traceback__ = _without_own_frames(each.__traceback__)
        chain += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


def _without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_HIDDEN_PATHS):
            kept.append(trace)
        elif file == _IMPORT_HOOK:  # Python hides its import frames, but not next to ours
            while kept and kept[-1].tb_frame.f_code.co_filename.startswith("<frozen importlib"):
                kept.pop()
        trace = trace.tb_next
    chain: TracebackType | None = None
    for each in reversed(kept):
        chain = TracebackType(chain, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return chain
