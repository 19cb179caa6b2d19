"""A training that LitData profiles: `python beside_litdata.py plain|wrap PROFILER FOLDER`.

PROFILER is an argument of LitData's loader: profile_batches or profile_cprofile.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import litdata
from other_loaders import litdata as rows_of
from toy import Clock, mode

import pipeprof


def main() -> None:
    _, profiler, out = sys.argv[1:]
    plain, value = litdata.StreamingDataLoader, 5 if profiler == "profile_batches" else True

    def profiled(*arguments: Any, **options: Any) -> Any:
        return plain(*arguments, **options, **{profiler: value, "profile_dir": out})

    litdata.StreamingDataLoader = profiled
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        train = rows_of(Path(folder))
        if mode() == "wrap":
            train = pipeprof.wrap(train, "train", whole=True)
        clock.train(train)
        clock.report({"train": train.profile()} if mode() == "wrap" else {})


if __name__ == "__main__":
    main()
