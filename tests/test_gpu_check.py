"""``make gpu-check`` on a machine without a GPU: one clear line, and no failure."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch


def test_without_a_gpu_it_says_so_and_succeeds(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    main = runpy.run_path(str(repo / "scripts" / "gpu_check.py"))["main"]
    assert main([]) == 0
    output = capsys.readouterr().out
    assert output == f"No CUDA GPU here (torch {torch.__version__}): nothing was checked.\n"
