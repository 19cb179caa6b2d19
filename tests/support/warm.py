"""Programs that start in no time: each runs in a fork of a process that has imported torch, or
whatever else takes longer to import than most programs of tests run.

    with WarmPython(sys.executable, ["torch"]) as warm:
        done = warm.run(["-m", "pipeprof", "report", "run.json"], cwd=folder)

It is for tests that look at what a program does with libraries, not at how it starts. The server is
this file; it needs the standard library alone.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from uuid import uuid4

SERVER = __file__
_LONGEST_REQUEST = 1 << 20


class WarmPython:
    """A server that has imported ``modules``, and ends with this process at the latest."""

    def __init__(
        self,
        python: str,
        modules: Sequence[str],
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Start it. The first program waits until the modules are imported."""
        self.address = f"\0pipeprof-warm-{uuid4()}"  # of Linux, which is no file
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.address)
            listener.listen()
            self._process = subprocess.Popen(
                [python, *options, SERVER, str(listener.fileno()), *modules],
                pass_fds=[listener.fileno()], stdin=subprocess.PIPE, env=env,
            )  # fmt: skip

    def __enter__(self) -> WarmPython:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float = 240
    ) -> subprocess.CompletedProcess[str]:
        """Run ``python WORDS``, where these begin with a script, or with ``-m`` and a module."""
        with (
            open(os.devnull) as nothing,
            tempfile.TemporaryFile("w+") as stdout,
            tempfile.TemporaryFile("w+") as stderr,
        ):
            streams = [each.fileno() for each in (nothing, stdout, stderr)]
            code = ask(self.address, words, str(cwd), env, streams, timeout)
            said = [_content(stdout), _content(stderr)]
        return subprocess.CompletedProcess([*words], code, *said)

    def run_ranks(
        self, words: Sequence[str], ranks: int, cwd: Path, env: Mapping[str, str]
    ) -> list[subprocess.CompletedProcess[str]]:
        """Run it once for each rank of a job on this machine, with the variables of torchrun."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        job = {
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1",
            "WORLD_SIZE": f"{ranks}", "LOCAL_WORLD_SIZE": f"{ranks}",
            "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": f"{uuid4()}",
        }  # fmt: skip
        envs = [{**env, **job, "RANK": f"{rank}", "LOCAL_RANK": f"{rank}"} for rank in range(ranks)]
        with ThreadPoolExecutor(ranks) as pool:
            return [*pool.map(lambda env: self.run(words, cwd, env), envs)]


@cache
def with_torch() -> WarmPython:
    """This environment's Python, for all tests of this process."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return WarmPython(sys.executable, ["torch"], env)


def _content(file: tempfile._TemporaryFileWrapper[str]) -> str:
    file.seek(0)
    return file.read()


def ask(
    address: str, words: Sequence[str], cwd: str, env: Mapping[str, str], streams: Sequence[int],
    timeout: float | None = None,
) -> int:  # fmt: skip
    """Return the exit code. Raises `TimeoutError`, and then the program is killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.settimeout(timeout)
        server.connect(address)
        request = json.dumps({"words": [*words], "cwd": cwd, "env": dict(env)}).encode()
        socket.send_fds(server, [request], streams)
        return int(server.recv(64))


def _serve(listener: socket.socket) -> list[str]:
    """Return the words of a program, in its process; the server itself never returns."""
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [], 10.0)
        while _has_ended():
            pass
        if sys.stdin in ready:  # whoever started it has closed the pipe, or is gone
            os._exit(0)
        if listener in ready:
            client, _ = listener.accept()
            if not os.fork():
                listener.close()
                return _begin(client)
            client.close()


def _has_ended() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] > 0
    except ChildProcessError:
        return False


def _begin(client: socket.socket) -> list[str]:
    """Fork the program, in which this returns; here, wait for it, and tell the client its end."""
    content, streams, _, _ = socket.recv_fds(client, _LONGEST_REQUEST, 3)
    program = os.fork()
    if program:
        os._exit(_wait(program, client))
    client.close()
    request = json.loads(content)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    return list(request["words"])


def _wait(program: int, client: socket.socket) -> int:
    while True:
        ended, status = os.waitpid(program, os.WNOHANG)
        if ended:
            client.send(str(os.waitstatus_to_exitcode(status)).encode())
            return 0
        if select.select([client], [], [], 0.01)[0]:  # it says no more, so it is gone
            os.kill(program, signal.SIGKILL)
            return 1


def _run(words: list[str]) -> None:
    """As Python itself would."""
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    del sys.path[0]  # the modules of this folder are none of the program's
    for name in sys.argv[2:]:
        import_module(name)
    gc.freeze()  # a program that ends would copy all of it, to look for garbage
    _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
