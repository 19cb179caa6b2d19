"""Kernels are compiled once for all the processes of a run: ``python -m tests.kernels``."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import pipeprof.formats
from pipeprof.formats.compiled import kernels


def modules() -> list[str]:
    """All that hold kernels, by their names; the longest to compile first, more or less."""
    folder = Path(str(pipeprof.formats.__file__)).parent
    sources = [path for path in folder.glob("*.py") if "@kernel(" in path.read_text()]
    sources.sort(key=lambda path: -path.stat().st_size)
    return [f"pipeprof.formats.{path.stem}" for path in sources]


@cache
def load_all() -> None:
    """In this process: what is given little time to decode has none to compile."""
    for module in modules():
        kernels(module)


def compiled(module: str) -> bool:
    return kernels(module) is not None


if __name__ == "__main__":
    with ProcessPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(compiled, modules()))
