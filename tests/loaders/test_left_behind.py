"""However a run ends, training is as without pipeprof, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.errors import UsageError
from tests.loaders.forms import Act, Marked
from tests.support.env import UNWATCHED
from tests.support.leaks import descriptors, threads
from tests.support.wait import comes

SETTINGS: dict[str, dict[str, Any]] = {
    "inline": {},
    "workers": {"num_workers": 2},
    "persistent": {"num_workers": 1, "persistent_workers": True},
}


def standing() -> set[object]:
    """Return threads, descriptors, names in the temporary folder, and our names in shared
    memory."""
    shared = os.listdir("/dev/shm")
    ours = {name for name in shared if f"_{os.getpid()}_" in name or "pipeprof" in name}
    return {*threads(), *descriptors(), *os.listdir(os.environ["TMPDIR"]), *ours}


def leave(loader: Any, how: str) -> None:
    """Iterate until the loop ends in the way that ``how`` says."""
    iterator = iter(loader)
    try:
        for number, _ in enumerate(iterator):
            if number == 2 and how == "break":
                break
            if number == 2 and how == "error in the loop":
                raise RuntimeError(how)
    except (RuntimeError, LookupError):
        # torch keeps the iterator in the error's traceback
        getattr(iterator, "_shutdown_workers", lambda: None)()


def bad_at_12(index: int) -> None:
    if index == 12:
        raise LookupError("sample 12 is bad")


@pytest.mark.parametrize("how", ["break", "error in the loop", "error in a worker", "end"])
@pytest.mark.parametrize("form", SETTINGS)
def test_nothing_is_left_however_the_loop_ends(form, how, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    act = bad_at_12 if how == "error in a worker" else lambda index: None

    def use() -> None:
        loader = pipeprof.wrap(DataLoader(Act(act, 32), 4, **SETTINGS[form]))
        leave(loader, how)
        loader.profile()

    running = threads()
    use()  # what Python and torch open once and for all
    comes(lambda: threads() <= running)  # torch's threads end in a while
    gc.collect()
    before = standing()
    use()
    comes(lambda: standing() <= before or (gc.collect() and False))
    assert not standing() - before


def test_the_user_sees_torchs_own_error_when_a_worker_is_killed():
    def error(wrapped: bool) -> tuple[type, str]:
        loader = DataLoader(Act(lambda index: time.sleep(60 * (index > 2))), num_workers=1)
        iterator = iter(pipeprof.wrap(loader) if wrapped else loader)
        for _ in range(3):
            next(iterator)
        os.kill(iterator._workers[0].pid, signal.SIGKILL)
        with pytest.raises(RuntimeError) as caught:
            list(iterator)
        iterator._shutdown_workers()
        return type(caught.value), re.sub(r"\d+", "N", str(caught.value))

    assert error(wrapped=True) == error(wrapped=False)


class Unpicklable(Marked):
    def __init__(self) -> None:
        self.act = lambda: None


def test_a_data_set_that_cannot_be_pickled_is_torchs_own_error():
    def error(wrapped: bool) -> tuple[Any, ...]:
        loader = DataLoader(Unpicklable(), num_workers=1, multiprocessing_context="spawn")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with pytest.raises(Exception, match="pickle") as caught:
                iter(pipeprof.wrap(loader) if wrapped else loader)
        assert loader.worker_init_fn is None
        return type(caught.value), str(caught.value), [str(one.message) for one in warned]

    assert error(wrapped=True) == error(wrapped=False)


class NoLoader(Dataset):
    def __getitem__(self, index):
        return index


@pytest.mark.parametrize("thing", [None, 7, NoLoader()])
def test_what_is_no_loader_is_refused_with_a_word(thing):
    with pytest.raises(UsageError, match=f"a batch, not {type(thing).__name__}"):
        pipeprof.wrap(thing)


SCRIPT = """
import sys, time
from torch.utils.data import DataLoader, _utils
import pipeprof
from tests.loaders.forms import Act

# so often workers look whether their parent lives: each 5 s
_utils.worker.MP_STATUS_CHECK_INTERVAL = 0.5

how, wrapped = sys.argv[1], sys.argv[2] == "wrapped"
wrap = pipeprof.wrap if wrapped else lambda loader: loader
loaders = [
    wrap(DataLoader(Act(lambda index: time.sleep(0.01), 100_000), num_workers=number))
    for number in (0, 2)
]
if how == "exit":
    persistent = DataLoader(Act(lambda index: None), num_workers=1, persistent_workers=True)
    loaders += [wrap(persistent), wrap(batch for batch in range(9))]
iterators = [iter(loader) for loader in loaders]
# a batch of each worker: one whose parent dies before it has begun takes init for its parent, and
# torch's own worker waits for good
for iterator in iterators:
    next(iterator), next(iterator)
workers = [
    worker.pid for iterator in iterators for worker in getattr(iterator, "_workers", ())
]
print(*workers, flush=True)
if how == "exit":
    sys.exit(3)
for batch in iterators[1]:
    time.sleep(0.01)
"""


def start_script(how: str, kind: str, folder: Path, repo: Path) -> subprocess.Popen[str]:
    """Start a script whose loader is wrapped or plain, as ``kind`` says."""
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, how, kind],
        cwd=repo,
        env={**UNWATCHED, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def signal_script(
    process: subprocess.Popen[str], sent: signal.Signals | None, group: bool
) -> list[int]:
    """Send the script ``sent``, if any, and return its workers, which may notice seconds later."""
    assert process.stdout
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert workers
    if sent is not None:
        (os.killpg if group else os.kill)(process.pid, sent)
    return workers


def ended(process: subprocess.Popen[str], workers: list[int]) -> tuple[int, str]:
    """Return exit code and output, once the process and its workers have ended."""
    _, complaints = process.communicate(timeout=60)
    comes(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    return process.returncode, complaints


@pytest.mark.parametrize(
    ("how", "sent", "group"),
    [
        ("exit", None, False),
        ("Ctrl-C", signal.SIGINT, True),
        ("killed", signal.SIGKILL, False),
    ],
)
def test_nothing_is_left_when_the_process_ends(how, sent, group, tmp_path_factory, repo):
    kinds = ("plain", "wrapped")
    # a short name: multiprocessing makes sockets in it, whose paths have 107 characters at most
    folder, shared_before = tmp_path_factory.mktemp("left"), set(os.listdir("/dev/shm"))
    running = {kind: start_script(how, kind, folder / kind, repo) for kind in kinds}
    try:
        workers = {kind: signal_script(running[kind], sent, group) for kind in kinds}
        endings = {kind: ended(running[kind], workers[kind]) for kind in kinds}
    finally:
        for process in running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    (plain_code, plain_words), (code, words) = (endings[kind] for kind in kinds)
    assert code == plain_code
    if how == "exit":
        assert words == plain_words
    elif how == "Ctrl-C":
        assert "KeyboardInterrupt" in words
        assert "Exception ignored" not in words
    # multiprocessing's own folder may stay behind a worker that was handing over a tensor
    left = os.listdir(folder / "wrapped")
    assert not [name for name in left if not name.startswith("pymp-")]
    shared = os.listdir("/dev/shm")
    counts = [sum(f"_{process.pid}_" in name for name in shared) for process in running.values()]
    assert counts[0] == counts[1]
    ours = {name for name in shared if "pipeprof" in name and "-lance-" not in name}
    assert ours <= shared_before, "Lance files are written by other tests at the same time"
