"""A script that ends while it still holds pipeprof's objects ends without any output of
pipeprof."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
import torch
from torch.utils.data import DataLoader, TensorDataset
import pipeprof

# held by the interpreter itself: this module outlives those that it imports, as one does that an
# extension in C holds
this_module = sys.modules[__name__]
os.register_at_fork(before=lambda: this_module)

workers, end, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
data_set = pipeprof.open_dataset(folder, batch_size=8)
own = DataLoader(data_set, batch_size=None, num_workers=workers)
user = DataLoader(TensorDataset(torch.arange(64)), batch_size=8, num_workers=workers)
iterators = [iter(pipeprof.wrap(loader)) for loader in (own, user)]
first, second = iterators
for each in iterators:
    next(each)
    if end == "exhausted":
        list(each)
"""


@pytest.mark.parametrize(
    ("workers", "end"),
    [
        ("2", "half-way"),
        pytest.param("0", "exhausted", marks=pytest.mark.slow),
        pytest.param("0", "half-way", marks=pytest.mark.slow),
        pytest.param("2", "exhausted", marks=pytest.mark.slow),
    ],
)
def test_an_iterator_in_a_global_is_dropped_in_silence(workers, end, tmp_path):
    script, data = tmp_path / "train.py", tmp_path / "data"
    script.write_text(SCRIPT)
    data.mkdir()
    (data / "rows.csv").write_text("a,b\n" + "1,2\n" * 64)
    ended = subprocess.run(
        [sys.executable, script, workers, end, data], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
