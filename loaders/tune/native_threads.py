"""Limits the threads that libraries of a worker start for themselves."""

from __future__ import annotations

import os
import sys

from threadpoolctl import threadpool_limits

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Read by libraries that are loaded later."""


def limit_threads(threads: int) -> None:
    """Let OpenMP, BLAS, OpenCV and Arrow use ``threads`` in this process."""
    threadpool_limits(threads)
    os.environ.update(dict.fromkeys(_VARIABLES, f"{threads}"))
    if (cv2 := sys.modules.get("cv2")) is not None:
        cv2.setNumThreads(threads)
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.set_cpu_count(threads)
