"""Train on data that is downloaded into a cache: `python full_cache.py streaming|litdata LIMIT`.

The remote storage is a folder, which the library's own downloader copies from. Each download takes
a while longer, as over a network, and is written down. LIMIT is in bytes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import torch

import pipeprof

SAMPLES, SAMPLE_BYTES, SHARD_BYTES, BATCH, EPOCHS = 320, 40_000, 400_000, 8, 3
DOWNLOAD_S, STEP_S = 0.05, 0.002


def slowed(cls: Any, name: str, log: Path) -> None:
    """Let each download of data last longer, and note it."""
    original = getattr(cls, name)

    def download(self: Any, remote: str, local: str, *more: Any) -> Any:
        if not remote.endswith(".json"):
            sleep(DOWNLOAD_S)
            with log.open("a") as file:
                file.write(f"{Path(remote).name}\n")
        return original(self, remote, local, *more)

    setattr(cls, name, download)


def streaming(folder: Path, limit: int, log: Path) -> Any:
    from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
    from streaming.base.storage.download import LocalDownloader

    class Rows(StreamingDataset):
        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.from_numpy(super().__getitem__(index)["row"].copy())

    columns = {"row": "ndarray:uint8"}
    with MDSWriter(out=str(folder / "remote"), columns=columns, size_limit=SHARD_BYTES) as writer:
        for index in range(SAMPLES):
            writer.write({"row": row(index)})
    slowed(LocalDownloader, "_download_file_impl", log)
    rows = Rows(
        remote=str(folder / "remote"), local=str(folder / "local"), batch_size=BATCH,
        cache_limit=limit, predownload=BATCH,
    )  # fmt: skip
    return StreamingDataLoader(rows, BATCH, num_workers=2)


def litdata(folder: Path, limit: int, log: Path) -> Any:
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming.downloader import LocalDownloaderWithCache
    from litdata.streaming.writer import BinaryWriter

    (folder / "remote").mkdir()
    writer = BinaryWriter(str(folder / "remote"), chunk_bytes=SHARD_BYTES)
    for index in range(SAMPLES):
        writer[index] = torch.from_numpy(row(index))
    writer.done()
    writer.merge()
    slowed(LocalDownloaderWithCache, "download_file", log)
    rows = StreamingDataset(
        f"local:{folder / 'remote'}", cache_dir=str(folder / "local"), max_cache_size=limit
    )
    return StreamingDataLoader(rows, batch_size=BATCH, num_workers=2, collate_fn=torch.stack)


def row(index: int) -> Any:
    return np.random.default_rng(index).integers(0, 256, SAMPLE_BYTES, dtype=np.uint8)


KINDS: dict[str, Callable[[Path, int, Path], Any]] = {"streaming": streaming, "litdata": litdata}


def main() -> None:
    kind, limit = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "downloads"
        log.touch()
        loader = pipeprof.wrap(KINDS[kind](folder, limit, log), "train", whole=True)
        epochs, downloads = [], []
        for _ in range(EPOCHS):
            begin_s, before = perf_counter(), len(log.read_text().splitlines())
            for _batch in loader:
                sleep(STEP_S)
            epochs.append(perf_counter() - begin_s)
            downloads.append(len(log.read_text().splitlines()) - before)
        answer = {
            "epochs": epochs, "downloads": downloads, "profile": loader.profile().to_dict(),
        }  # fmt: skip
        sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
