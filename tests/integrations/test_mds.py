"""Shards of MDS: what MosaicML Streaming writes is read, and what is written it reads."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.integrations.environments import WITHOUT_CUDA, folder_of, with_examples

pytestmark = pytest.mark.integrations


def test_both_read_what_the_other_wrote(tmp_path: Path) -> None:
    script = Path(__file__).with_name("mds_shards.py")
    command = [str(folder_of("streaming") / "python"), "-W", "ignore", str(WITHOUT_CUDA)]
    done = subprocess.run([*command, str(script), str(tmp_path)], capture_output=True, text=True,
                          timeout=120, env=with_examples())  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    for found in answer["by_pipeprof"]:
        assert found["objects"] > 3
        assert found["id"] == list(range(20))
        assert found["price"] == [row / 4 for row in range(20)]
        assert found["text"] == [f"häß {row}" for row in range(20)]
        assert found["blob"] == list(range(20))
        assert found["box"] == [[row, 0.5] for row in range(20)]
        assert found["tokens"] == [list(range(row + 1)) for row in range(20)]
    assert answer["by_streaming"] == [
        {"id": 1, "word": "a", "vector": [0.5, 1], "tokens": [1]},
        {"id": 2, "word": "häß", "vector": [2, 3], "tokens": [2, 3, 4]},
    ]
