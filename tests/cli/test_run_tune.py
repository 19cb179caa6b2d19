"""`pipeprof run --tune`: an unmodified script trains with settings that are found meanwhile."""

import json
import re

import pytest

from tests.cli.running import write
from tests.support.env import UNWATCHED
from tests.support.warm import with_torch

pytestmark = pytest.mark.timed  # a search takes its time

RUN = ["-m", "pipeprof", "run"]

SCRIPT = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.tensor([index])

torch.manual_seed(3)
loader = DataLoader(Slow(), batch_size=8, shuffle=True)
for epoch in range(3):
    order = [int(index) for batch in loader for index in batch]
    print(hash(tuple(order)), sorted(order) == list(range(4000)))
print(loader.num_workers, torch.rand(1).item())
"""


def run(words, folder):
    return with_torch().run(words, folder, UNWATCHED)


def test_a_script_is_tuned_while_it_runs(tmp_path):
    write(tmp_path, {"train.py": SCRIPT, "quick.py": SCRIPT.replace("time.sleep(0.001)", "pass")})
    plain = run(["quick.py"], tmp_path)
    tuned = run([*RUN, "--tuned", "tuned.json", "train.py"], tmp_path)
    assert tuned.stdout == plain.stdout
    assert "train.py:15, to be tuned: workers that start draw other random numbers" in tuned.stderr
    assert "train.py:15, tuned:" in tuned.stderr
    assert "kept" in tuned.stderr
    assert "This DataLoader will create" not in tuned.stderr
    (profile,) = (tmp_path / "pipeprof-run").iterdir()
    assert json.loads(profile.read_bytes())["config"]["num_workers"] > 0


AGAIN = (
    SCRIPT.partition("torch.manual_seed")[0]
    + """
for epoch in range(4):
    samples = 0
    for batch in DataLoader(Slow(), batch_size=8):
        samples += len(batch)
        time.sleep(0.002)
    print(samples)
"""
)


@pytest.mark.timed
def test_a_loader_that_is_made_again_starts_with_what_was_found(tmp_path):
    write(tmp_path, {"train.py": AGAIN})
    tuned = run([*RUN, "--tune", "train.py"], tmp_path)
    assert tuned.stdout.split() == ["4000"] * 4
    (before,) = [line for line in tuned.stderr.splitlines() if line.startswith("  before")]
    assert "num_workers=0" not in before


def test_a_script_is_tuned_shown_and_exported_at_once(tmp_path):
    """A loader that is made again continues the totals of the last one."""
    write(tmp_path, {"train.py": AGAIN})
    exported = ["--export", "jsonl:m.jsonl", "--export-every", "0.2"]
    shown = ["--live", "--live-every", "0.2"]
    done = run([*RUN, "--tune", *shown, *exported, "train.py"], tmp_path)
    assert done.stdout.split() == ["4000"] * 4
    assert "train.py:17, tuned:" in done.stderr
    assert re.search(r"^pipeprof: train\.py:17, epoch \d: \d+ of 500 batches", done.stderr, re.M)
    sent = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    totals = [each["batches_total"] for each in sent]
    assert totals == sorted(totals)
    assert totals[-1] == 4 * 500
    assert sent[-1]["epoch"] == 4
    assert "stages/fetch/mean_s" in sent[-1]


@pytest.mark.parametrize("option", [[], ["--tune"]])
def test_a_loader_that_the_script_tunes_is_tuned_and_reported(tmp_path, option):
    script = SCRIPT.replace("shuffle=True)", "shuffle=True)\nloader = pipeprof.tune(loader)")
    write(tmp_path, {"train.py": "import pipeprof" + script})
    done = run([*RUN, *option, "train.py"], tmp_path)
    assert "train.py:15, tuned:" in done.stderr
    assert "kept" in done.stderr
    (profile,) = (tmp_path / "pipeprof-run").iterdir()
    saved = json.loads(profile.read_bytes())
    assert saved["config"]["num_workers"] > 0
    assert "fetch" in saved["stages"]
    assert done.stderr.count("train.py:15, tuned:") == 1


def test_what_cannot_be_combined_is_named(tmp_path):
    write(tmp_path, {"train.py": "print(1)"})
    done = run([*RUN, "--tune", "--whole", "train.py"], tmp_path)
    assert done.returncode == 2
    assert "--tune cannot be combined with --whole" in done.stderr
