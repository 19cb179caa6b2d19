"""`pipeprof run` on scripts that need no torch: they run as under Python itself."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.test_unprivileged import LAY_DOWN
from tests.support.env import UNWATCHED
from tests.support.requirements import missing
from tests.support.wait import comes

RUN = [sys.executable, "-m", "pipeprof", "run"]


def call(command, folder, env=UNWATCHED, **options):
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False, env=env,
        **options,
    )  # fmt: skip


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


SCRIPTS = {
    "where it is": """
import builtins, pickle, sys, warnings
class Own: pass
print(__name__, __file__, __package__, __spec__, __doc__, __cached__, sorted(globals()))
print(sys.argv, sys.path, __builtins__ is builtins, vars(sys.modules["__main__"]) is globals())
print(type(__loader__), type(pickle.loads(pickle.dumps(Own()))) is Own, sys.stdin.read())
import beside
warnings.warn("shown", DeprecationWarning)
""",
    "a number": "import sys; sys.exit(5)",
    "a large number": "import sys; sys.exit(-1)",
    "a text": "import sys; sys.exit('no data')",
    "nothing": "raise SystemExit",
    "an error": """
def load():
    {}["key"]
try:
    load()
except KeyError as error:
    raise ValueError("no key") from error
""",
    "an error while handling another": "try: {}[0]\nexcept KeyError: 1 / 0",
    "a group of errors": "raise ExceptionGroup('two', [ValueError(1), KeyError(2)])",
    "an error of ours": "import pipeprof\npipeprof.load('run.json')",
    "an error that click knows": "raise EOFError",
    "a syntax error": "def broken(:\n    pass",
    "a wrong encoding": "# coding: latin-1\nprint('\xe9')",
    "an interrupt": "raise KeyboardInterrupt",
    "a hook": """
import sys
sys.excepthook = lambda kind, error, trace: print("hook", kind, error, trace.tb_lineno)
raise ValueError("seen")
""",
    "a hook that exits": """
import sys
sys.excepthook = lambda *_: sys.exit(7)
1 / 0
""",
    "a broken hook": """
import sys
def hook(*_):
    raise RuntimeError("hook")
sys.excepthook = hook
1 / 0
""",
    "a closed stdout": "import sys; print('last'); sys.stdout.close()",
    "a closed stderr": "import sys; sys.stderr.close()",
    "what goes on after its last line": """
import atexit, sys, threading, time
@atexit.register
def last():
    print("handler"), print("handler", file=sys.stderr)
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
""",
    "children": """
import multiprocessing, os, sys
if os.fork() == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
process = multiprocessing.get_context("fork").Process(target=print, args=("forked",))
process.start(), process.join()
""",
    "a spawned child": """
import multiprocessing
class Own:
    pass
def work(queue):
    queue.put((__name__, Own()))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    name, own = queue.get()
    print(name, type(own) is Own, process.join())
""",
}


def without_ours(stderr):
    """What the script itself has written to stderr."""
    return "".join(
        line for line in stderr.splitlines(keepends=True) if not line.startswith("pipeprof: ")
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_under_python(name, tmp_path):
    if name == "a group of errors" and sys.version_info < (3, 11):
        pytest.skip("Python 3.10 has none")
    write(tmp_path, {"beside.py": "print(__name__)"})
    (tmp_path / "script.py").write_bytes(SCRIPTS[name].encode("latin-1"))
    command = ["script.py", "--epochs", "1", "--", "-m", "--help"]
    expected = call([sys.executable, *command], tmp_path, input="typed")
    done = call([*RUN, *command], tmp_path, input="typed")
    assert done.stdout == expected.stdout, done.stderr
    assert done.returncode == expected.returncode
    assert without_ours(done.stderr) == expected.stderr
    if name != "a closed stderr":
        assert done.stderr.startswith(expected.stderr), "ours comes last"
        assert done.stderr.count("pipeprof: ") == 1
    assert not (tmp_path / "pipeprof-run").exists()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("pass", "pipeprof: script.py iterated no DataLoader in its own process, so nothing was"),
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
    # but for the frames of `runpy`, which Python shows
    ours = without_ours(done.stderr).removeprefix("Traceback (most recent call last):\n")
    assert expected.stderr.endswith(ours)
    assert bool(ours) == bool(expected.stderr)


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
    assert done.returncode == code == call([sys.executable, *arguments], tmp_path).returncode
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
        (["--out", "script.py", "script.py"], "Directory 'script.py' is a file"),
    ],
)
def test_a_wrong_call_is_explained_before_anything_runs(arguments, says, tmp_path):
    write(tmp_path, {"script.py": "print('ran')"})
    done = call([*RUN, *arguments], tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_a_signal_ends_it_as_it_ends_python(number, tmp_path):
    write(tmp_path, {"script.py": "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"})
    ends = []
    for command in ([sys.executable, "script.py"], [*RUN, "script.py"]):
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            assert comes(lambda pid=process.pid: asleep(pid))
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
        ends.append((process.returncode, without_ours(stderr)))
    assert ends[0] == ends[1]
    assert ends[0][0] == -number


def asleep(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(") ")[2][0] == "S"


def test_a_script_may_be_a_link_and_use_what_lies_beside_its_target(tmp_path):
    files = {"far/script.py": "import beside, sys; print(sys.path[0])", "far/beside.py": ""}
    write(tmp_path, files)
    (tmp_path / "link.py").symlink_to(tmp_path / "far/script.py")
    assert call([*RUN, "link.py"], tmp_path).stdout == f"{tmp_path}/far\n"


def test_safe_path_is_respected(tmp_path):
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 has none")
    write(tmp_path, {"script.py": "import sys; print(*sys.path)"})
    environment = {**UNWATCHED, "PYTHONSAFEPATH": "1"}
    expected = call([sys.executable, "script.py"], tmp_path, env=environment)
    assert call([*RUN, "script.py"], tmp_path, env=environment).stdout == expected.stdout


def small_torch(dataloader):
    """A package of that name in which there is next to nothing."""
    folders = ("torch", "torch/utils", "torch/utils/data")
    return {
        **{f"{folder}/__init__.py": "" for folder in folders},
        "torch/utils/data/dataloader.py": dataloader,
    }


def test_a_torch_that_we_do_not_know_is_left_alone(tmp_path):
    script = "from torch.utils.data.dataloader import Loader; print(Loader())"
    write(tmp_path, {"script.py": script, **small_torch("class Loader: pass")})
    done = call([*RUN, "script.py"], tmp_path)
    assert done.stdout.startswith("<torch.utils.data.dataloader.Loader object")
    assert done.returncode == 0
    assert done.stderr == "pipeprof: torch's DataLoader cannot be watched (AttributeError).\n"


def test_a_torch_that_cannot_be_imported_fails_as_it_does_without_us(tmp_path):
    write(tmp_path, {"script.py": "import torch.utils.data.dataloader", **small_torch("1 / 0")})
    expected = call([sys.executable, "script.py"], tmp_path)
    done = call([*RUN, "script.py"], tmp_path)
    assert without_ours(done.stderr) == expected.stderr
    assert "ZeroDivisionError" in expected.stderr


def test_json_and_markdown_exclude_one_another(tmp_path):
    write(tmp_path, {"script.py": "print('ran')"})
    done = call([*RUN, "--json", "--markdown", "script.py"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "give one of them" in done.stderr


@pytest.mark.timed
def test_it_starts_and_ends_in_little_time(tmp_path):
    write(tmp_path, {"script.py": ""})

    def least_s(command):
        times = []
        for _ in range(3):
            start = time.perf_counter()
            call([*command, "script.py"], tmp_path)
            times.append(time.perf_counter() - start)
        return min(times)

    assert least_s(RUN) - least_s([sys.executable]) < 1
