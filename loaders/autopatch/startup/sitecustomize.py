"""Measure in each Python process that a script under ``pipeprof run`` starts.

The folder of this file is on ``PYTHONPATH`` there, so Python imports it as a process begins. It
imports nothing that Python has not imported by then. A process that creates no DataLoader does not
even import pipeprof.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes some milliseconds
    from typing import Any

_LOADER = "torch.utils.data.dataloader"
_FIRST = (
    *("transformers.trainer", "accelerate.accelerator", "lightning.pytorch", "pytorch_lightning"),
    *("lightning.fabric", "lightning_fabric", "pipeprof.loaders.instrument.wrap"),
)
"""Modules that pipeprof has to know of before a DataLoader is created."""
_begun: list[bool] = []
"""Not empty from when this process is measured."""


class _Watcher:
    """The first of Python's finders. It acts on those modules as soon as they are imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if _begun or (name != _LOADER and name not in _FIRST):
            return None
        spec = self._found(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            loader, execute = spec.loader, spec.loader.exec_module

            def execute_and_act(module: Any) -> None:
                del loader.exec_module
                execute(module)
                if name == _LOADER:
                    _start_with_first_loader(module.DataLoader)
                else:
                    _start()

            loader.exec_module = execute_and_act
        return spec

    def _found(self, name: str, path: Any, target: Any) -> Any:
        for finder in sys.meta_path:
            found = None if finder is self else finder.find_spec(name, path, target)
            if found is not None:
                return found
        return None


def _start_with_first_loader(base: Any) -> None:
    import inspect

    def first_new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if not _begun:
            _start()
            if base.__new__ is not first_new:  # but the session's, which calls this one
                return base.__new__(cls, *args, **kwargs)
        new: Any = super(base, cls).__new__
        return new(cls) if new is object.__new__ else new(cls, *args, **kwargs)

    # `inspect`, and frameworks that use it, must still find the arguments of the class
    first_new.__signature__ = inspect.signature(base.__init__)  # type: ignore[attr-defined]
    base.__new__ = staticmethod(first_new)


def _start() -> None:
    if _begun:
        return
    _begun.append(True)
    try:
        from pipeprof.cli.run_followed import start
    except ImportError:
        _say(f"{sys.executable} has no pipeprof, so process {os.getpid()} is not measured.")
    else:
        start()


def _say(line: str) -> None:
    if sys.stderr is not None:
        print(f"pipeprof: {line}", file=sys.stderr)


def _import_next() -> None:
    """Import the sitecustomize that Python would have imported without this one."""
    own = sys.modules.pop(__name__)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


if __name__ == "sitecustomize":
    _folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != _folder]
    if os.environ.get("PYTHONPATH") == _folder + os.pathsep:
        # where Ray put nothing behind it, Python takes that for the current folder
        sys.path[:1] = [each for each in sys.path[:1] if each != os.getcwd()]
    if "PIPEPROF_FOLLOW" in os.environ:
        sys.meta_path.insert(0, _Watcher())
    _import_next()
