from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pipeprof
from tests.samples import sample_profile
from tests.sweep_samples import sample_sweep

HEAVY = ("torch", "pyarrow", "numpy", "fsspec", "s3fs", "PIL")


def heavy_after(code: str, folder: Path) -> set[str]:
    """The heavy libraries that ``code`` has imported by its end, in a process of its own."""
    code += f"\nimport sys; print('heavy:', *(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_pipeprof_imports_nothing_heavy(tmp_path: Path) -> None:
    assert heavy_after("import pipeprof; dir(pipeprof)", tmp_path) == set()


def test_a_saved_file_is_read_and_shown_without_torch_or_pyarrow(tmp_path: Path) -> None:
    sample_profile().save(tmp_path / "run.json")
    sample_sweep().save(tmp_path / "sweep.json")
    code = "import pipeprof; print(pipeprof.load('run.json')); pipeprof.load('sweep.json')"
    assert heavy_after(code, tmp_path) == set()


@pytest.mark.slow
def test_to_profile_torchs_own_loader_starts_no_thread_beside_which_it_would_fork(
    tmp_path: Path,
) -> None:
    # importing pyarrow starts a thread, and Python 3.12 warns of every fork with several threads
    code = """
import warnings
from torch.utils.data import DataLoader
import pipeprof
loader = pipeprof.wrap(DataLoader(range(8), num_workers=2))
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    for _ in range(2):
        list(loader)
    loader.profile()
assert not warned, [str(each.message) for each in warned]"""
    assert "pyarrow" not in heavy_after(code, tmp_path)


def test_heavy_libraries_are_noticed(tmp_path: Path) -> None:
    assert "pyarrow" in heavy_after("import pipeprof.formats.base", tmp_path)


@pytest.mark.parametrize("name", pipeprof.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(pipeprof, name)
    assert value is not None
    assert name == "__version__" or value.__doc__
    assert name in dir(pipeprof)


@pytest.mark.parametrize("name", [name for name in pipeprof.__all__ if name != "__version__"])
def test_every_public_name_has_an_example_and_each_of_its_arguments(name: str) -> None:
    value = getattr(pipeprof, name)
    text = inspect.getdoc(value) or ""
    assert "Examples:\n" in text
    if inspect.isfunction(value):
        arguments = text.partition("Args:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^    (\w+): ", arguments, re.MULTILINE) == [
            *inspect.signature(value).parameters
        ]


def test_type_checkers_see_the_names_that_python_sees(repo: Path) -> None:
    source = ast.parse((repo / "pipeprof" / "__init__.py").read_text())
    guard = next(node for node in source.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == pipeprof._MODULES
    assert {*imported, "__version__"} == set(pipeprof.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pipeprof' has no attribute 'wrp'"):
        pipeprof.wrp  # noqa: B018


def test_python_dash_m_pipeprof(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeprof", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"pipeprof, version {pipeprof.__version__}\n"
