"""What only a CUDA GPU can show, skipped elsewhere. ``make gpu-check`` runs it, and prints the
figures that the tests note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.gpu.kernels import Spin, calibrated

_FIGURES = pytest.StashKey[list[tuple[str, str]]]()


@pytest.fixture(autouse=True, scope="session")
def cuda() -> None:
    """CUDA is in use, as it is once there is a model."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU here")
    torch.ones(1, device="cuda")


@pytest.fixture(scope="session")
def spin(cuda: None) -> Spin:
    return calibrated()


@pytest.fixture
def figure(cuda: None, pytestconfig: pytest.Config) -> Callable[[str, str], None]:
    """Note a figure, to be printed when all is done."""
    figures = pytestconfig.stash.setdefault(_FIGURES, [])
    return lambda name, value: figures.append((name, value))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    figures = config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section(f"figures of {torch.cuda.get_device_name()}")
        figures = [("torch", f"{torch.__version__}, CUDA {torch.version.cuda}"), *figures]
        width = max(len(name) for name, _ in figures)
        for name, value in figures:
            terminalreporter.write_line(f"{name:<{width}}  {value}")
