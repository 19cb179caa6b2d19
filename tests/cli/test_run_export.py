"""Scripts that export their figures, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.cli.running import RUN, call
from tests.loaders.forms import SAMPLES

BATCHES = SAMPLES // 4
SCRIPT = """
import logging, sys, time
from torch.utils.data import DataLoader
import pipeprof
from scripts.grafana import dashboard
from tests.loaders.forms import Marked

loader = DataLoader(Marked(), 4, num_workers=1)
loader = pipeprof.wrap(loader, export=sys.argv[1], export_every=1e-6)
begin = time.perf_counter()
print(len(list(loader)), time.perf_counter() - begin < 4)
"""


def test_a_receiver_that_is_away_is_said_once_and_never_blocks(repo) -> None:
    command = [sys.executable, "-c", SCRIPT, "otlp:http://127.0.0.1:9/v1/metrics"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=repo)
    assert done.stdout == f"{BATCHES} True\n"
    away, lost = done.stderr.splitlines()
    assert away.startswith("pipeprof: the OTLP receiver takes no exports")
    assert lost.endswith("exports did not arrive.")


def test_all_loaders_of_a_script_are_exported_without_an_edit(tmp_path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from torch.utils.data import DataLoader\n"
        "for _ in range(2):\n    list(DataLoader(range(40), 4))\n"
        "list(DataLoader(range(8), 4))\n"
    )
    assert call([*RUN, "--export", "jsonl:m.jsonl", "train.py"], tmp_path).returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    last = {each["loader"]: each["batches_total"] for each in lines}
    assert last == {"train.py:3": 20.0, "train.py:4": 2.0}
