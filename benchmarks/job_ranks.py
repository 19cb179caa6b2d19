"""Joins a job of thousands of ranks: time and memory of `pipeprof gather`, and size of its page.

The profiles are made from those of real ranks: each step of a made-up rank takes the wait and the
step of a real one, and all ranks end it together. One of them loads more slowly than all others.

Run with ``make bench-job``; the page needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from benchmarks.html_report import EMPTY, interactive, measured
from pipeprof import load
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.model import BatchLog, JobPlace, Profile
from pipeprof.units import format_bytes, format_duration

RANKS, OF_HOST, STEPS = 4_096, 8, 1_000
SLOW = 1_234
"""The rank that loads more slowly."""
MORE_S = 0.100
"""How much longer it waits for each batch: longer than the late batches of others take."""
MOST_SECONDS, MOST_MEMORY, MOST_BYTES, MOST_INTERACTIVE_S = 20.0, 1_000_000_000, 3_000_000, 2.0
MOMENTS = ("fetch_start_s", "fetch_end_s", "sent_s", "received_s", "arrived_s", "pinned_s")
TRAINING = f"""
import random, time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Napping(Dataset):
    def __len__(self):
        return {STEPS + 64}
    def __getitem__(self, index):
        time.sleep(0.030 if random.random() < 0.02 else 0.002)
        return torch.tensor([float(index)])

if __name__ == "__main__":
    dist.init_process_group("gloo")
    for batch in DataLoader(Napping(), num_workers=1):
        time.sleep(0.004)
        dist.all_reduce(batch)
    dist.destroy_process_group()
"""


def real_ranks(folder: Path) -> list[Profile]:
    """Train with two real ranks, and return their profiles."""
    (folder / "train.py").write_text(TRAINING)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run(
        [sys.executable, *launch, "-m", "pipeprof", "run", "--quiet", "--whole", "train.py"],
        cwd=folder, check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    files = sorted(folder.glob("pipeprof-run/*/rank*/train*.json"))
    return [profile for profile in map(load, files) if isinstance(profile, Profile)]


def made_ranks(
    real: Sequence[Profile], count: int, steps: int, seed: int = 0
) -> Iterator[tuple[str, bytes]]:
    """Yield the folder and the profile of each of ``count`` ranks, which step together."""
    random = np.random.default_rng(seed)
    tables = [Columns.of(profile.batches) for profile in real]
    rows = [random.integers(0, len(tables[rank % len(real)]), steps) for rank in range(count)]
    waits_s = np.array([tables[rank % len(real)].stall_s[row] for rank, row in enumerate(rows)])
    waits_s[SLOW % count] += MORE_S
    own_s = min(np.percentile(table.step_s, 5) for table in tables)
    ends_s = np.cumsum((waits_s + own_s * random.uniform(1, 1.02, waits_s.shape)).max(axis=0))
    documents = [asdict(profile) for profile in real]
    for rank, row in enumerate(rows):
        document, host = documents[rank % len(real)], f"node{rank // OF_HOST:04d}"
        place = JobPlace("torchrun", rank, world_size=count, local_rank=rank % OF_HOST)
        environment = {"rank": rank, "host": host, "job": asdict(place)}
        made = document | {
            "environment": document["environment"] | environment,
            "batches": _moved(tables[rank % len(real)].at(row), waits_s[rank], ends_s),
        }
        options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
        yield f"{host}/rank{rank}", orjson.dumps(made, option=options) + b"\n"


def _moved(
    table: Columns, waits_s: npt.NDArray[np.float64], ends_s: npt.NDArray[np.float64]
) -> dict[str, npt.NDArray[Any]]:
    """Return the steps of a real rank, moved in time so that they end at ``ends_s``."""
    asked_s, count = np.concatenate(([0.0], ends_s[:-1])), len(ends_s)
    later_s = asked_s + waits_s - table.delivered_s
    columns = {each.name: getattr(table, each.name) for each in fields(BatchLog)}
    columns |= {name: columns[name] + later_s for name in MOMENTS}
    columns |= {"asked_s": asked_s, "delivered_s": asked_s + waits_s, "done_s": ends_s}
    columns |= {"index": np.arange(count), "nth": np.arange(count), "epoch": np.zeros(count)}
    columns["epoch_batches"] = np.full(count, count)
    for each in fields(BatchLog):
        if "int" in str(each.type) and not np.isnan(columns[each.name]).any():
            columns[each.name] = columns[each.name].astype(int)
    return columns


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else RANKS
    with tempfile.TemporaryDirectory(prefix="pipeprof-job-") as name:
        folder = Path(name)
        real = real_ranks(folder)
        saved = 0
        for rank, profile in made_ranks(real, count, STEPS):
            (folder / "job" / rank).mkdir(parents=True)
            (folder / "job" / rank / "train.json").write_bytes(profile)
            saved += len(profile)
        seconds, memory = measured("gather", folder / "job", folder / "job.html")
        size = (folder / "job.html").stat().st_size
        (folder / "empty.html").write_text(EMPTY)
        usable, empty = (sorted(each)[len(each) // 2] for each in
                         interactive([folder / "job.html", folder / "empty.html"]))  # fmt: skip
        shown = f"Rank {SLOW % count} on " in (folder / "job.html").read_text()
    print(f"{count:,} ranks of {STEPS:,} steps, {format_bytes(saved)} of profiles")
    print(f"gathered and rendered: {format_duration(seconds)} (bar {MOST_SECONDS:.0f} s), "
          f"{format_bytes(memory)} (bar {format_bytes(MOST_MEMORY)})")  # fmt: skip
    print(f"page: {format_bytes(size)} (bar {format_bytes(MOST_BYTES)}), usable after "
          f"{format_duration(usable)} (bar {MOST_INTERACTIVE_S:.0f} s; an empty page "
          f"{format_duration(empty)})")  # fmt: skip
    print(f"the rank that loads slowly is named: {'yes' if shown else 'NO'}")


if __name__ == "__main__":
    main()
