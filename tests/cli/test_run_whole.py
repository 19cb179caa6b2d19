"""`pipeprof run --whole` on a loader so fast that it would otherwise be sampled."""

import json
import subprocess
import sys

from tests.support.env import UNWATCHED

BATCHES = 1_000
SCRIPT = f"""
from torch.utils.data import DataLoader

for count, batch in enumerate(DataLoader(range(10_000), None, num_workers=1), 1):
    if count == {BATCHES}:
        break
"""


def test_every_batch_is_watched(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "pipeprof", "run", "--whole", "--json", "script.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False, env=UNWATCHED,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (profile,) = json.loads(done.stdout)
    assert profile["measured_batches"] + profile["warmup_batches"] == BATCHES
    assert profile["notes"] == []
