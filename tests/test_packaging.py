"""Every method of installation installs what is in the repository."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import pipeprof
import pipeprof.formats

ROOMS = ("bench_data", "cli", "formats", "loaders")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def tracked(repo: Path) -> list[str]:
    """Files of the repository, those not yet committed included."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=repo)
    return [name for name in listed.split("\0") if name and os.path.lexists(repo / name)]


def python_files(repo: Path) -> list[Path]:
    return [repo / name for name in tracked(repo) if name.endswith(".py")]


def copy(repo: Path, target: Path) -> Path:
    """A clone as git would make it: links as links, nothing that is ignored."""
    for name in tracked(repo):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repo / name, target / name, follow_symlinks=False)
    return target


@pytest.fixture(scope="module")
def clone(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy(repo, tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def built(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, clone, cwd=folder)
    return folder


def wheel_files(folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def test_the_wheel_holds_pipeprof_and_nothing_else(built: Path) -> None:
    tops = {name.partition("/")[0] for name in wheel_files(built)}
    assert tops == {"pipeprof", f"pipeprof-{pipeprof.__version__}.dist-info"}


def test_the_wheel_holds_every_module_with_its_content(built: Path, repo: Path) -> None:
    expected = {
        f"pipeprof/{name}" if name.startswith(ROOMS) else name: (repo / name).read_bytes()
        for name in tracked(repo)
        if name.startswith(("pipeprof/", *(f"{room}/" for room in ROOMS)))
        and not (repo / name).is_symlink()
    }
    files = wheel_files(built)
    packed = {name: data for name, data in files.items() if name.startswith("pipeprof/")}
    assert packed == expected
    assert "pipeprof/py.typed" in packed
    assert {f"pipeprof/{room}/__init__.py" for room in ROOMS} <= packed.keys()


def test_the_wheel_names_its_licence_and_its_command(built: Path) -> None:
    files = wheel_files(built)
    info = f"pipeprof-{pipeprof.__version__}.dist-info"
    assert f"{info}/licenses/LICENSE" in files
    assert b"pipeprof = pipeprof.cli:main" in files[f"{info}/entry_points.txt"]
    assert b"License-Expression: Apache-2.0" in files[f"{info}/METADATA"]


def test_the_wheel_from_the_tree_is_the_wheel_from_the_sdist(
    built: Path, clone: Path, tmp_path: Path
) -> None:
    run(
        sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, clone,
        cwd=tmp_path,
    )  # fmt: skip
    assert wheel_files(tmp_path).keys() == wheel_files(built).keys()


def test_the_sdist_holds_files_in_place_of_links(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        members = sdist.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    assert not [member.name for member in members if member.issym() or member.islnk()]
    assert {"pipeprof/formats/base.py", "pipeprof/cli/app.py", "CHANGELOG.md", "LICENSE"} <= names


def test_an_installed_wheel_imports_from_an_empty_folder(built: Path, tmp_path: Path) -> None:
    target, empty = tmp_path / "target", tmp_path / "empty"
    empty.mkdir()
    wheel = next(built.glob("*.whl"))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, "--no-deps", "--no-compile", "--target", target, wheel, cwd=empty)
    code = "import pipeprof, pipeprof.formats.base as base; print(pipeprof.__file__, base.__file__)"
    assert run(sys.executable, "-c", code, cwd=empty, PYTHONPATH=str(target)).split() == [
        f"{target}/pipeprof/__init__.py",
        f"{target}/pipeprof/formats/base.py",
    ]


def test_an_editable_install_follows_the_links(clone: Path, tmp_path: Path) -> None:
    """By what pip itself calls, in an interpreter that has no other pipeprof to fall back on."""
    code = f"from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})"
    run(sys.executable, "-c", code, cwd=clone)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    code = (
        f"import site; site.addsitedir({str(tmp_path / 'site')!r})\n"
        "import pipeprof, pipeprof.formats; print(pipeprof.__file__, pipeprof.formats.__file__)"
    )
    assert run(sys.executable, "-I", "-S", "-c", code, cwd=tmp_path).split() == [
        f"{clone}/pipeprof/__init__.py",
        f"{clone}/pipeprof/formats/__init__.py",
    ]


def test_these_tests_run_on_the_repository_itself(repo: Path) -> None:
    assert pipeprof.__file__ == str(repo / "pipeprof" / "__init__.py")
    assert Path(str(pipeprof.formats.__file__)).resolve() == repo / "formats" / "__init__.py"


def test_the_rooms_are_committed_as_links(repo: Path) -> None:
    listed = run("git", "ls-files", "-s", *(f"pipeprof/{room}" for room in ROOMS), cwd=repo)
    modes = {line.split()[3]: line.split()[0] for line in listed.splitlines()}
    assert modes == {f"pipeprof/{room}": "120000" for room in ROOMS}
    assert {room: os.readlink(repo / "pipeprof" / room) for room in ROOMS} == {
        room: f"../{room}" for room in ROOMS
    }


def bare_imports(source: str) -> list[str]:
    """Imports that would find a top-level folder, or nothing, in place of `pipeprof.…`."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "" if node.level == 0 else ".")
    return [name for name in names if name.partition(".")[0] in (*ROOMS, "")]


def test_every_import_is_from_pipeprof(repo: Path) -> None:
    bare = {str(file): bare_imports(file.read_text()) for file in python_files(repo)}
    assert not {file: names for file, names in bare.items() if names}


@pytest.mark.parametrize(
    "source",
    ["import formats", "import cli.app as app", "from loaders import wrap", "from . import base"],
)
def test_a_bare_import_is_noticed_here_and_by_ruff(source: str, repo: Path) -> None:
    assert bare_imports(source)
    ruff = (sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID", "-")
    done = subprocess.run(ruff, cwd=repo, input=source, capture_output=True, text=True)
    assert done.returncode == 1
    assert "TID25" in done.stdout
