"""`pipeprof run` on scripts that train: every DataLoader that they iterate has its profile."""

import json
import os
import re
import sys

import pytest

from tests.cli.running import RUN, call, call_cold


def line(script, mark):
    """Return the name of the loader that is created in the line with ``mark``."""
    found = [n for n, text in enumerate(script.splitlines(), 1) if f"# {mark}" in text]
    return f"script.py:{found[0]}"


def profiles(folder):
    documents = [json.loads(path.read_bytes()) for path in folder.rglob("*.json")]
    return {document["name"]: document for document in documents if "schema" in document}


def delivered(profile):
    return profile["warmup_batches"] + profile["measured_batches"]


LOADERS = """
import gc, multiprocessing, weakref
import torch
from torch.utils.data import DataLoader, Dataset
import pipeprof

class Numbers(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        return torch.tensor([index])

class Nested(Numbers):
    def __getitem__(self, index):
        return torch.cat(list(DataLoader(Numbers(), 40)))[index]

class Doubled(DataLoader):
    def __iter__(self):
        for batch in super().__iter__():
            yield 2 * batch

class Apart(DataLoader):
    def __iter__(self):
        return map(torch.neg, self._get_iterator())

def all_of(loader):
    return torch.cat(list(loader)).flatten().tolist()

def child():
    all_of(DataLoader(Numbers(), 4))  # forked

def train():
    for epoch in range(3):
        loader = DataLoader(Numbers(), 4)  # rebuilt
        assert all_of(loader) == list(range(40))
    first, second = [DataLoader(Numbers(), size) for size in (4, 8)]  # two at once
    for _ in zip(first, second):
        pass
    spawned = DataLoader(  # spawned
        Numbers(), 4, num_workers=1, multiprocessing_context="spawn", persistent_workers=True)
    assert all_of(spawned) == all_of(spawned)
    all_of(DataLoader(Nested(), 4, num_workers=1))  # nested
    assert all_of(Doubled(Numbers(), 4)) == list(range(0, 80, 2))  # doubled
    assert all_of(Apart(Numbers(), 4)) == list(range(0, -40, -1))  # apart
    assert all_of(pipeprof.wrap(DataLoader(Numbers(), 4), "own name")) == list(range(40))
    DataLoader(Numbers(), 4)  # never iterated
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start(), process.join()
    data = Numbers()
    list(DataLoader(data, 4))  # left
    ref = weakref.ref(data)
    del data
    gc.collect()
    print("kept" if ref() else "freed")

if __name__ == "__main__":
    train()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "script.py").write_text(LOADERS)
    done = call([*RUN, "--whole", "script.py"], folder, os.environ)
    return done, profiles(folder / "pipeprof-run")


def test_the_script_is_not_disturbed(run):
    done, _ = run
    assert done.returncode == 0, done.stderr
    assert done.stdout == "freed\n", "no loader and no data set is kept alive"


def test_each_loader_that_was_iterated_has_one_profile_named_by_its_line(run):
    _, found = run
    assert {name: delivered(profile) for name, profile in found.items()} == {
        line(LOADERS, "rebuilt"): 30,
        line(LOADERS, "two at once"): 6,  # `zip` asks the first before the second has no more
        f"{line(LOADERS, 'two at once')} #2": 5,
        line(LOADERS, "spawned"): 20,
        line(LOADERS, "nested"): 10,
        line(LOADERS, "doubled"): 10,
        line(LOADERS, "apart"): 10,
        "own name": 10,
        line(LOADERS, "forked"): 10,
        line(LOADERS, "left"): 10,
    }


def test_workers_are_seen_from_inside(run):
    _, found = run
    for mark, method in (("spawned", "spawn"), ("nested", "fork")):
        profile = found[line(LOADERS, mark)]
        assert profile["config"]["start_method"] == method
        assert profile["stages"]["fetch"]["count"] == profile["measured_batches"]
        assert profile["lost_records"] == 0


def test_a_subclass_that_uses_torchs_iterator_is_seen_whole_and_another_from_outside(run):
    _, found = run
    assert "fetch" not in found[line(LOADERS, "doubled")]["missing"]
    assert "iterator of its own" in found[line(LOADERS, "apart")]["missing"]["fetch"]


def test_the_report_and_the_places_of_the_files_come_last_on_stderr(run):
    done, found = run
    heads = [text for text in done.stderr.splitlines() if text.startswith("pipeprof: ")]
    assert {head.removeprefix("pipeprof: ") for head in heads[:-2]} == set(found)
    rebuilt, forked = (line(LOADERS, mark).replace(":", "-") for mark in ("rebuilt", "forked"))
    assert heads[-2].startswith(f"pipeprof: saved pipeprof-run/{rebuilt}.json, pipeprof-run/")
    assert heads[-1].startswith("pipeprof: process ")
    assert heads[-1].endswith(f"/{forked}.json")
    assert done.stderr.count("\nConfidence\n") == len(found)


SETTINGS = """
import sys, torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

class Own(DataLoader):
    def __init__(self, size):
        super().__init__(torch.arange(40), size, num_workers=0)

def shown(loader):
    for _ in loader:
        pass
    print(loader.num_workers, loader.prefetch_factor, loader.batch_size, loader.persistent_workers)

if __name__ == "__main__":
    shown(DataLoader(torch.arange(40), 4, False, None, None, 0))  # positional
    shown(Own(4))
    shown(DataLoader(  # workers
        torch.arange(40), 4, num_workers=2, prefetch_factor=4, persistent_workers=True))
    batches = BatchSampler(SequentialSampler(range(40)), 4, False)
    shown(DataLoader(torch.arange(40), batch_sampler=batches))  # batches
    try:
        DataLoader(torch.arange(40), size=4)
    except TypeError as error:
        print(error)
    sys.exit(int(sys.argv[1]))
"""


def test_arguments_are_replaced_in_all_loaders_or_in_those_of_a_line(tmp_path):
    (tmp_path / "script.py").write_text(SETTINGS)
    workers = line(SETTINGS, "workers")
    done = call(
        [
            *RUN, "--json", "--fail-if-starved", "0%", "--out", "out",
            "--set", "num_workers=1,batch_size=8", "--set", f"{workers}:num_workers=0",
            "--set", "script.py:99:num_workers=1",
            "script.py", "0",
        ],
        tmp_path,
    )  # fmt: skip
    *printed, document = done.stdout.split("\n", 5)
    assert printed == [
        "1 2 8 False",
        "1 2 8 False",
        "0 None 8 False",
        "1 2 None False",
        "DataLoader.__init__() got an unexpected keyword argument 'size'",
    ]
    assert done.returncode == 3, "the script itself ended well"
    assert "starved" in done.stderr.splitlines()[-1]
    assert "--set script.py:99:num_workers=1: no DataLoader was made there" in done.stderr
    found = {profile["name"]: profile for profile in json.loads(document)}
    assert found == profiles(tmp_path / "out")
    assert found[line(SETTINGS, "positional")]["notes"] == [
        "--set replaced num_workers 0 → 1, batch_size 4 → 8"
    ]
    (note,) = found[workers]["notes"]
    assert note.startswith("--set replaced num_workers 2 → 0, batch_size 4 → 8, prefetch_factor ")
    assert found[line(SETTINGS, "batches")]["notes"] == [
        "--set replaced num_workers 0 → 1",
        "--set batch_size=8 was left out: the script's batch_sampler makes the batches",
    ]


def test_a_script_that_fails_keeps_its_exit_code_however_starved(tmp_path):
    """Markdown goes to stdout, after the output of the script."""
    (tmp_path / "script.py").write_text(SETTINGS)
    arguments = ["--quiet", "--markdown", "--fail-if-starved", "0%"]
    done = call([*RUN, *arguments, "script.py", "5"], tmp_path)
    assert done.returncode == 5
    assert done.stderr == (
        "pipeprof: script.py ended with exit code 5; its loaders were measured until then.\n"
    )
    found = profiles(tmp_path / "pipeprof-run")
    assert len(found) == 4
    printed, *reports = done.stdout.split("## script.py:")[0], *done.stdout.split("\n## ")[1:]
    assert printed.endswith("unexpected keyword argument 'size'\n")
    assert {report.partition("\n")[0] for report in reports} == set(found)
    assert all("### Where the time goes" in report for report in reports)


CRASH = """
import gc

import torch
from torch.utils.data import DataLoader, Dataset

# so long torch waits for the workers of a loader that has failed: 5 s
torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.5

class Broken(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        if index == 20:
            raise ValueError("a broken sample")
        return torch.tensor([index])

if __name__ == "__main__":
    try:
        for batch in DataLoader(Broken(), 4, num_workers=1):
            pass
    except ValueError as error:
        print(error)
    gc.collect()  # or a worker that is forked may do it, and find an iterator not its own
    for batch in DataLoader(Broken(), 4, num_workers=WORKERS):
        pass
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_the_data_set_is_shown_as_without_us(workers, tmp_path):
    (tmp_path / "script.py").write_text(CRASH.replace("WORKERS", str(workers)))
    expected = call_cold([sys.executable, "script.py"], tmp_path)
    done = call_cold([*RUN, "--out", "/proc/nowhere", "script.py"], tmp_path)
    assert (done.returncode, done.stdout) == (1, expected.stdout)
    assert "a broken sample" in done.stdout
    assert done.stderr.startswith(expected.stderr)
    ours = done.stderr.removeprefix(expected.stderr)
    assert ours.startswith("pipeprof: script.py raised ValueError; its loaders were measured")
    assert "pipeprof: /proc/nowhere/script.py-20.json cannot be written: " in ours
    assert re.search("[345] batches", ours)


def test_the_whole_report_is_printed_where_it_is_asked_for(tmp_path):
    (tmp_path / "script.py").write_text(
        "from torch.utils.data import DataLoader\nfor batch in DataLoader(range(40), 2): pass\n"
    )
    brief, full = (
        call([*RUN, *arguments, "script.py"], tmp_path) for arguments in ([], ["--full"])
    )
    assert "Where the time goes" in full.stderr
    assert "Where the time goes" not in brief.stderr
    assert len(brief.stderr.splitlines()) <= 34, "a screen and a few lines around it"
