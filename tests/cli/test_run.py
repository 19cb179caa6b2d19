"""`pipeprof run` on scripts that need no torch: they run as under Python itself."""

import signal
import subprocess
import sys
import time

import pytest

from tests.cli.running import RUN, call_cold, without_pipeprof, write
from tests.support.env import UNWATCHED
from tests.support.wait import comes

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
    "threads and handlers after the last line": """
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


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_under_python(name, tmp_path):
    if name == "a group of errors" and sys.version_info < (3, 11):
        pytest.skip("Python 3.10 has none")
    write(tmp_path, {"beside.py": "print(__name__)"})
    (tmp_path / "script.py").write_bytes(SCRIPTS[name].encode("latin-1"))
    command = ["script.py", "--epochs", "1", "--", "-m", "--help"]
    expected = call_cold([sys.executable, *command], tmp_path, input="typed")
    done = call_cold([*RUN, *command], tmp_path, input="typed")
    assert done.stdout == expected.stdout, done.stderr
    assert done.returncode == expected.returncode
    assert without_pipeprof(done.stderr) == expected.stderr
    if name != "a closed stderr":
        assert done.stderr.startswith(expected.stderr), "pipeprof prints last"
        assert done.stderr.count("pipeprof: ") == 1
    assert not (tmp_path / "pipeprof-run").exists()


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
        ends.append((process.returncode, without_pipeprof(stderr)))
    assert ends[0] == ends[1]
    assert ends[0][0] == -number


def asleep(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(") ")[2][0] == "S"


def test_a_script_may_be_a_link_and_use_what_lies_beside_its_target(tmp_path):
    files = {"far/script.py": "import beside, sys; print(sys.path[0])", "far/beside.py": ""}
    write(tmp_path, files)
    (tmp_path / "link.py").symlink_to(tmp_path / "far/script.py")
    assert call_cold([*RUN, "link.py"], tmp_path).stdout == f"{tmp_path}/far\n"


def test_safe_path_is_respected(tmp_path):
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 has none")
    write(tmp_path, {"script.py": "import sys; print(*sys.path)"})
    environment = {**UNWATCHED, "PYTHONSAFEPATH": "1"}
    expected = call_cold([sys.executable, "script.py"], tmp_path, env=environment)
    assert call_cold([*RUN, "script.py"], tmp_path, env=environment).stdout == expected.stdout


@pytest.mark.timed
def test_it_starts_and_ends_in_little_time(tmp_path):
    write(tmp_path, {"script.py": ""})

    def least_s(command):
        times = []
        for _ in range(3):
            start = time.perf_counter()
            call_cold([*command, "script.py"], tmp_path)
            times.append(time.perf_counter() - start)
        return min(times)

    assert least_s(RUN) - least_s([sys.executable]) < 1
