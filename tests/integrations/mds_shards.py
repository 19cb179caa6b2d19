"""Write shards of MDS by MosaicML Streaming and by pipeprof, and read each by the other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from streaming import MDSWriter, StreamingDataset

import pipeprof
from pipeprof import formats

COLUMNS = {
    "id": "int", "price": "float32", "text": "str", "blob": "bytes", "box": "ndarray:float32:2",
    "tokens": "ndarray:int64",
}  # fmt: skip


def sample(row: int) -> dict[str, object]:
    return {
        "id": row, "price": row / 4, "text": f"häß {row}", "blob": bytes([row] * row),
        "box": np.array([row, 0.5], np.float32), "tokens": np.arange(row + 1),
    }  # fmt: skip


def by_pipeprof(folder: Path) -> list[dict[str, object]]:
    """What pipeprof reads of shards that Streaming wrote, plain and compressed."""
    found = []
    for compression in (None, "zstd", "gz"):
        out = folder / f"streaming-{compression}"
        with MDSWriter(out=str(out), columns=COLUMNS, compression=compression, size_limit=400) as w:
            for row in range(20):
                w.write(sample(row))
        dataset = pipeprof.open_dataset(str(out), batch_size=20)
        [batch] = dataset
        tokens = [batch["tokens"][row].tolist() for row in range(20)]
        found.append(
            {
                "objects": dataset.source.objects,
                "id": batch["id"].tolist(),
                "price": batch["price"].tolist(),
                "box": batch["box"].tolist(),
                "tokens": tokens,
                "text": [batch["text"].bytes_at(row).decode() for row in range(20)],
                "blob": [len(batch["blob"].bytes_at(row)) for row in range(20)],
            }
        )
    return found


def by_streaming(folder: Path) -> list[dict[str, object]]:
    """What Streaming reads of a shard that pipeprof wrote."""
    table = pa.table(
        {
            "id": pa.array([1, 2]),
            "word": ["a", "häß"],
            "vector": pa.array([[0.5, 1], [2, 3]], pa.list_(pa.float32(), 2)),
            "tokens": pa.array([[1], [2, 3, 4]]),
        }
    )
    encoder = formats.get("mds").encoder(table.schema)
    data = b"".join(map(encoder.write, table.to_batches())) + encoder.finish()
    [samples, first] = np.frombuffer(data, "<u4", 2).tolist()
    config = json.loads(data[4 * (2 + samples) : first])
    shard = {
        **config, "samples": samples, "zip_data": None,
        "raw_data": {"basename": "shard.00000.mds", "bytes": len(data), "hashes": {}},
    }  # fmt: skip
    out = folder / "pipeprof"
    out.mkdir()
    (out / "shard.00000.mds").write_bytes(data)
    (out / "index.json").write_text(json.dumps({"shards": [shard], "version": 2}))
    dataset = StreamingDataset(local=str(out), batch_size=1)
    rows = [dataset[row] for row in range(samples)]
    return [
        {name: value.tolist() if hasattr(value, "tolist") else value for name, value in row.items()}
        for row in rows
    ]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    print(json.dumps({"by_pipeprof": by_pipeprof(place), "by_streaming": by_streaming(place)}))
