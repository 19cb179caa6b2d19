"""Import the user's functions that the command line names, such as ``file.py:function``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pipeprof.errors import PipeprofError, UsageError


@dataclass(frozen=True)
class Reference:
    """Calls the function that ``text`` names. It can be pickled: each process imports the function.
    ``text`` is ``module:function`` or ``file.py:function``."""

    text: str

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function. Raises `PipeprofError` with the place and error of a failure."""
        function = self.load()
        try:
            return function(*arguments, **named)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise PipeprofError(
                f"your function {self.text} failed at {frame.filename}:{frame.lineno}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def load(self) -> Callable[..., Any]:
        """Import the function. Raises `UsageError` when there is no such function, and
        `PipeprofError` when its module fails to import."""
        if self.text not in _loaded:
            _loaded[self.text] = _load(self.text)
        return _loaded[self.text]


_loaded: dict[str, Callable[..., Any]] = {}


def _load(text: str) -> Callable[..., Any]:
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{text!r} is not of the form module:function or file.py:function")
    module = _import_file(Path(place)) if place.endswith(".py") else _import_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{place} has no function {name!r}; check the name")
    return cast(Callable[..., Any], function)


def _import_module(name: str) -> ModuleType:
    # as `python -m` does, so that modules in the current folder are found
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0] and error.name != name:
            raise _failed(name, error) from error
        raise UsageError(f"there is no module {name!r} to import; check the name") from None
    except Exception as error:
        raise _failed(name, error) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path} does not exist; name it as file.py:function")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _failed(str(path), error) from error
    return module


def _failed(place: str, error: Exception) -> PipeprofError:
    return PipeprofError(f"{place} failed to import: {type(error).__name__}: {error}")
