"""Run the tests that need a CUDA GPU. Without one, nothing runs and the exit code is 0.

python scripts/gpu_check.py [arguments of pytest]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

REPO = Path(__file__).parent.parent


def main(arguments: list[str]) -> int:
    if not torch.cuda.is_available():
        print(f"No CUDA GPU here (torch {torch.__version__}): nothing was checked.")
        return 0
    os.chdir(REPO)
    return int(pytest.main(["tests/gpu", "-q", *arguments]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
