"""Kernels: compiled where that can be, and never in the way where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from pipeprof.formats import compiled
from pipeprof.formats.compiled import SWITCH, kernel, kernels
from tests.needs import missing

MODULE = "pipeprof.formats.vectors"


@pytest.fixture
def numba() -> None:
    if find_spec("numba") is None:
        missing("numba is not installed")


def test_a_switch_turns_kernels_off(numba: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels(MODULE) is not None
    monkeypatch.setenv(SWITCH, "0")
    assert kernels(MODULE) is None


@pytest.mark.parametrize("error", [ImportError, OSError, SystemError, TypeError])
def test_whatever_is_in_the_way_there_are_no_kernels(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise error(name)

    monkeypatch.setattr(compiled, "import_module", fail)
    compiled._loaded.cache_clear()
    assert kernels(MODULE) is None
    compiled._loaded.cache_clear()


def test_a_folder_that_cannot_be_written_only_costs_the_next_time(
    numba: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numba as library

    njit: Any = library.njit
    asked = []

    def without_a_folder(*arguments: Any, cache: bool = False, **options: Any) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*arguments, **options)

    monkeypatch.setattr(library, "njit", without_a_folder)

    @kernel("i8(i8)")
    def doubled(number: int) -> int:
        return 2 * number

    assert doubled(21) == 42
    assert asked[:2] == [True, False]


def test_a_kernel_is_compiled_anew_when_a_part_in_another_file_has_changed(
    numba: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "from pipeprof.formats.compiled import kernel\n"
    part, whole = tmp_path / "part_of_test.py", tmp_path / "whole_of_test.py"
    whole.write_text(
        f"{head}from pipeprof.formats.part_of_test import part\n"
        "@kernel('i8(i8)')\ndef whole(number): return part(number)\n"
    )
    answers, hits = [], []
    for factor in (2, 2, 300):
        part.write_text(f"{head}@kernel()\ndef part(number): return {factor} * number\n")
        os.utime(part, (1, 1))
        for path in (part, whole):
            module = load(path)
            monkeypatch.setitem(sys.modules, module.__name__, module)
        answers.append(module.whole(10))
        hits.append(sum(module.whole.stats.cache_hits.values()))
    assert answers == [20, 20, 3000]
    assert hits == [0, 1, 0]


def load(path: Path) -> Any:
    spec = spec_from_file_location(f"pipeprof.formats.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def test_numba_is_not_loaded_before_a_file_is_opened() -> None:
    lines = (
        "import sys, pipeprof",
        "from pipeprof.formats import FORMATS, get",
        "[get(name) for name in FORMATS]",
        "assert 'pyarrow' in sys.modules and 'numba' not in sys.modules",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=60)
