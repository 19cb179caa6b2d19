"""`pipeprof run` on scripts whose loaders work in threads: their stages are timed."""

import json
import sys

import pytest

from tests.cli.running import RUN, call

pytest.importorskip("torchdata.nodes")

NODES = """
import sys
import time
import torch
from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper
import pipeprof

def read(index):
    time.sleep(0.002)
    return torch.tensor([index])

def loader():
    rows = ParallelMapper(IterableWrapper(range(80)), read, num_workers=2, method="thread")
    return Loader(Batcher(rows, 4))

def batches(made):
    yield from made

made = loader()
if "wrapped" in sys.argv:
    made = pipeprof.wrap(made, "own name")
if "around" in sys.argv:
    made = pipeprof.wrap(batches(made), "own name")
total = 0
for batch in made:
    total += int(torch.stack(batch).sum())
    time.sleep(0.001)  # the training step
print(total)
"""
EXPECTED = f"{sum(range(80))}\n"


def run(folder, *arguments):
    (folder / "script.py").write_text(NODES)
    done = call([*RUN, *arguments], folder)
    assert (done.returncode, done.stdout) == (0, EXPECTED), done.stderr
    found = [json.loads(path.read_bytes()) for path in (folder / "pipeprof-run").rglob("*.json")]
    return [each for each in found if "schema" in each], done.stderr


@pytest.mark.parametrize("options", [[], ["--set", "num_workers=2"], ["--tune"]])
def test_a_loader_of_torchdatas_nodes_is_measured_without_an_edit(options, tmp_path):
    [profile], said = run(tmp_path, *options, "script.py")
    assert profile["name"] == "script.py:14"
    source, read = profile["pipeline"]
    assert (source["name"], read["name"]) == ("IterableWrapper(range)", "read")
    assert read["busy_s"] > 40 * 0.002, "at least half of its 80 sleeps are in the measured part"
    assert "not measured" not in said


@pytest.mark.parametrize("how", ["wrapped", "around"])
def test_one_that_the_script_wraps_is_measured_once(how, tmp_path):
    found, _ = run(tmp_path, "script.py", how)
    assert [profile["name"] for profile in found] == ["own name"]
    assert found[0]["pipeline"]


def test_batches_are_those_without_us(tmp_path):
    (tmp_path / "script.py").write_text(NODES)
    assert call([sys.executable, "script.py"], tmp_path).stdout == EXPECTED


def test_a_version_that_cannot_be_hooked_is_said_and_left_alone(tmp_path):
    (tmp_path / "grain.py").write_text("class Another: pass\n")
    (tmp_path / "script.py").write_text("import grain\nprint(grain.Another.__name__)\n")
    done = call([*RUN, "script.py"], tmp_path)
    assert done.stdout == "Another\n"
    assert "pipeprof: loaders of grain cannot be profiled (AttributeError)" in done.stderr
