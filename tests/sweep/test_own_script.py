"""The user's unmodified script is run once for each setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.sweep.own_script import run_script, split_command
from pipeprof.sweep.plan import TrialSetting

TRAIN = """
import sys, time
from torch.utils.data import DataLoader

class Sleeping:
    def __len__(self):
        return 200
    def __getitem__(self, index):
        time.sleep(0.001)
        return index

if __name__ == "__main__":
    for batch in DataLoader([1, 2, 3]):
        pass
    for batch in DataLoader(Sleeping(), int(sys.argv[1]), num_workers=1):
        pass
    print("trained")
"""


def test_the_loader_that_takes_most_of_the_time_is_profiled(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    script = f"{tmp_path / 'train.py'} 4"
    profile = run_script(script, TrialSetting("", None, 2, 3), 0.05, tmp_path / "log")
    config = profile.config
    assert (config.num_workers, config.prefetch_factor, config.batch_size) == (2, 3, 4)
    assert profile.stages["fetch"].mean_s >= 0.004
    assert (tmp_path / "log").read_text() == "trained\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise SystemExit('no such disk')", "exit code 1 with num_workers=0: no such disk"),
        ("print('nothing to do')", "iterated no DataLoader"),
    ],
)
def test_a_script_without_a_profile_is_explained(tmp_path: Path, code: str, says: str) -> None:
    (tmp_path / "train.py").write_text(code)
    setting = TrialSetting("", None, 0, None)
    with pytest.raises(PipeprofError, match=says) as raised:
        run_script(str(tmp_path / "train.py"), setting, 0.05, tmp_path / "x")
    assert str(tmp_path / "x") in str(raised.value)


@pytest.mark.parametrize("text", ["", "nowhere.py", "python train.py", "'train.py"])
def test_an_impossible_script_is_refused_before_anything_runs(text: str) -> None:
    with pytest.raises(UsageError, match="--script"):
        split_command(text)
