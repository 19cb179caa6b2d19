"""Settings are found again for the same loader, data set, machine and versions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from pipeprof.errors import UsageError
from pipeprof.loaders.tune.remembered import RememberedSettings
from pipeprof.model import TunedSetting

DATA = torch.arange(64)
FOUND = TunedSetting(3, 4, pin_memory=True)


def test_what_was_kept_is_found_for_the_same_loader_only(tmp_path: Path) -> None:
    settings = RememberedSettings(tmp_path / "tuned.json")
    assert settings.find(DataLoader(DATA, batch_size=8)) is None
    settings.keep(DataLoader(DATA, batch_size=8), FOUND)
    settings.keep(DataLoader(DATA, batch_size=4), TunedSetting(1, 2))
    assert settings.find(DataLoader(DATA, batch_size=8)) == FOUND
    assert settings.find(DataLoader(DATA, batch_size=4)) == TunedSetting(1, 2)
    assert settings.find(DataLoader(DATA, batch_size=2)) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "pipeprof.tuned/1", "settings": 3}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tuned.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="not a file of tuned settings; name another"):
        RememberedSettings(file).find(DataLoader(DATA))


def test_what_cannot_be_written_does_not_end_training(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "tuned.json"
    RememberedSettings(file).keep(DataLoader(DATA), FOUND)
    assert not file.exists()
