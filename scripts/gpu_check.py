"""Run the tests that need a CUDA GPU, and compare a training on it with its driver's records.

    python -m scripts.gpu_check [arguments of pytest]

The figures are saved in docs/figures. Without a GPU nothing runs, and the exit code is 0.
"""

from __future__ import annotations

import sys

import torch

from scripts.figures import record


def main(arguments: list[str]) -> int:
    if not torch.cuda.is_available():
        print(f"No CUDA GPU here (torch {torch.__version__}): nothing was checked.")
        return 0
    tests = record("gpu-check", [sys.executable, "-m", "pytest", "tests/gpu", "-q", *arguments])
    training = record("gpu-training", [sys.executable, "-m", "benchmarks.gpu_training"])
    return tests or training


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
