"""`pipeprof run` without a result: wrong calls, missing modules, scripts without a loader."""

import os
import sys

import pytest

from tests.cli.running import RUN, call, call_cold, without_pipeprof, write
from tests.cli.test_unprivileged import LAY_DOWN
from tests.support.requirements import missing

MODULES = {
    "package/__init__.py": "print('package', __name__)",
    "package/train.py": """
import sys
from package import data
print(__name__, __file__, __package__, __spec__.name, sys.argv, sys.path[0])
data.fail()
""",
    "package/data.py": "def fail(): 1 / 0",
    "package/__main__.py": "import sys; print(__spec__.name, sys.argv); sys.exit(4)",
    "broken/__init__.py": "1 / 0",
    "needy/__init__.py": "import no_such_library",
}


@pytest.mark.parametrize("module", ["package.train", "package"])
def test_a_module_runs_as_under_python(module, tmp_path):
    write(tmp_path, MODULES)
    command = ["-m", module, "-m", "x"]
    expected = call([sys.executable, *command], tmp_path)
    done = call([*RUN, *command], tmp_path)
    assert (done.stdout, done.returncode) == (expected.stdout, expected.returncode)
    # Python also shows the frames of `runpy`
    own = without_pipeprof(done.stderr).removeprefix("Traceback (most recent call last):\n")
    assert expected.stderr.endswith(own)
    assert bool(own) == bool(expected.stderr)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            "pass",
            "pipeprof: script.py iterated no DataLoader, and no process that it started did,",
        ),
        (
            "1 / 0",
            "pipeprof: script.py raised ZeroDivisionError; no loader was measured until then.",
        ),
        (
            "raise SystemExit(2)",
            "pipeprof: script.py ended with exit code 2; no loader was measured",
        ),
        ("raise KeyboardInterrupt", "pipeprof: script.py was interrupted; no loader was measured"),
    ],
)
def test_a_run_without_a_loader_says_so_in_a_line(script, says, tmp_path):
    write(tmp_path, {"script.py": script})
    last = call([*RUN, "script.py"], tmp_path, os.environ).stderr.splitlines()[-1]
    assert last.startswith(says)


def test_nothing_measured_is_an_empty_array(tmp_path):
    write(tmp_path, {"script.py": "print('own')"})
    assert call([*RUN, "--json", "script.py"], tmp_path).stdout == "own\n[]\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["missing.py"], 2, "pipeprof: missing.py does not exist; a module is run with -m."),
        (["broken"], 1, "pipeprof: broken is a folder; run a module with -m, or name a script."),
        (["-m", "missing"], 1, "pipeprof: the module missing does not exist."),
        (["-m", "missing.x"], 1, "pipeprof: the module missing.x cannot be found: No module"),
        (["-m", "package.missing"], 1, "pipeprof: the module package.missing does not exist."),
        (["-m", "needy.x"], 1, "pipeprof: the module needy.x cannot be found: No module"),
        (["-m", "math"], 1, "pipeprof: the module math cannot be run: it holds no Python code."),
    ],
)
def test_what_cannot_be_run_gets_one_clear_line(arguments, code, says, tmp_path):
    write(tmp_path, MODULES)
    done = call([*RUN, *arguments], tmp_path)
    plain = call_cold([sys.executable, *arguments], tmp_path)
    assert done.returncode == code == plain.returncode
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1


def test_an_error_of_a_package_is_its_own(tmp_path):
    write(tmp_path, MODULES)
    done = call([*RUN, "-m", "broken.x"], tmp_path)
    assert done.returncode == 1
    assert f'File "{tmp_path}/broken/__init__.py", line 1' in done.stderr
    assert "pipeprof/loaders" not in done.stderr


def test_a_script_that_may_not_be_read(tmp_path):
    write(tmp_path, {"script.py": "print('read')"})
    (tmp_path / "script.py").chmod(0)
    root = os.getuid() == 0
    if root and not os.path.exists("/usr/bin/setpriv"):
        missing("permissions: we are root, and setpriv of util-linux is missing")
    done = call([*(LAY_DOWN if root else []), *RUN, "script.py"], tmp_path)
    assert done.returncode == 2
    assert done.stderr == "pipeprof: script.py cannot be read: Permission denied.\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Missing argument 'SCRIPT'"),
        (["--treshold", "5%", "script.py"], "Did you mean '--threshold'?"),
        (["--set", "workers=2", "script.py"], "'workers' cannot be set; what can: num_workers,"),
        (["--set", "num_workers=many", "script.py"], "num_workers=many is not a whole number"),
        (["--out", "script.py", "script.py"], "script.py is a file; name a folder"),
    ],
)
def test_a_wrong_call_is_explained_before_anything_runs(arguments, says, tmp_path):
    write(tmp_path, {"script.py": "print('ran')"})
    done = call([*RUN, *arguments], tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


def small_torch(dataloader):
    """Return the files of an almost empty package named torch."""
    folders = ("torch", "torch/utils", "torch/utils/data")
    return {
        **{f"{folder}/__init__.py": "" for folder in folders},
        "torch/utils/data/dataloader.py": dataloader,
    }


def test_an_unknown_torch_is_left_alone(tmp_path):
    script = "from torch.utils.data.dataloader import Loader; print(Loader())"
    write(tmp_path, {"script.py": script, **small_torch("class Loader: pass")})
    done = call_cold([*RUN, "script.py"], tmp_path)
    assert done.stdout.startswith("<torch.utils.data.dataloader.Loader object")
    assert done.returncode == 0
    assert done.stderr == "pipeprof: torch's DataLoader cannot be profiled (AttributeError).\n"


def test_a_torch_that_cannot_be_imported_fails_as_without_pipeprof(tmp_path):
    write(tmp_path, {"script.py": "import torch.utils.data.dataloader", **small_torch("1 / 0")})
    expected = call_cold([sys.executable, "script.py"], tmp_path)
    done = call_cold([*RUN, "script.py"], tmp_path)
    assert without_pipeprof(done.stderr) == expected.stderr
    assert "ZeroDivisionError" in expected.stderr


def test_json_and_markdown_exclude_each_other(tmp_path):
    write(tmp_path, {"script.py": "print('ran')"})
    done = call([*RUN, "--json", "--markdown", "script.py"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "give one of them" in done.stderr
