"""One reader in a process of its own: it reads a file on request, and reports how long that took.

    python benchmarks/readers_process.py READER THREADS

Each request and each answer is a line of JSON. It needs NumPy and the reader's library only.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter, process_time
from typing import Any

import numpy as np
from readers_arms import Job, as_arrays, batches, rows_of


def measure(reader: str, job: Job) -> dict[str, Any]:
    """Read the file once, and return the times and the rows."""
    rows = 0
    wall, cpu = perf_counter(), process_time()
    for batch in batches(reader, job):
        rows += rows_of(batch)
    return {"wall_s": perf_counter() - wall, "cpu_s": process_time() - cpu, "rows": rows}


def describe(reader: str, job: Job) -> dict[str, Any]:
    """Return what all readers must agree on: the type of each column, and a sum of its values."""
    types: dict[str, str] = {}
    sums: dict[str, float] = dict.fromkeys(job.types, 0.0)
    rows = 0
    for batch in batches(reader, job):
        rows += rows_of(batch)
        assert sorted(batch) == sorted(job.types), sorted(batch)
        for name, given in batch.items():
            column = as_arrays(given)
            values, offsets = column if isinstance(column, tuple) else (column, None)
            assert values.ndim == 1, values.shape
            assert values.flags.c_contiguous
            types[name] = str(values.dtype)
            sums[name] += float(np.nansum(values, dtype=np.float64))
            if offsets is not None:
                sums[name] += 1e-3 * float(np.square(np.diff(offsets), dtype=np.float64).sum())
    return {"types": types, "sums": sums, "rows": rows}


def main(reader: str, threads: int) -> None:
    os.environ.update(POLARS_MAX_THREADS=str(threads), TF_CPP_MIN_LOG_LEVEL="3")
    if threads == 1:  # threads of the library share the core as well
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output of the library is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        job = Job(asked["path"], asked["types"], asked["batch"], threads)
        try:
            answer = (describe if asked["describe"] else measure)(reader, job)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
