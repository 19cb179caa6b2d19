"""Inputs for what is fuzzed: valid ones of many kinds, and how they are damaged."""

from __future__ import annotations

import gzip
import io
import multiprocessing
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof import manifest, store
from pipeprof.formats import WRITTEN, get
from pipeprof.formats.tfrecord.framing import Deframer, frame
from pipeprof.manifest import Manifest, ManifestFile
from tests.contracts.format_samples import EVERY_TYPE, INFERRED, SMALL, encode
from tests.fuzz.mutate import mutated
from tests.samples import sample_profile
from tests.sweep_samples import sample_sweep

CORPUS = Path(__file__).parent.parent / "formats" / "corpus"
_LARGEST_SEED = 20_000
"""Bytes: in larger ones, few faults hit what steers."""
SCALARS = pa.table(
    {f"feature_{i:02}": pa.array([j * i / 7 for j in range(40)], pa.float32()) for i in range(6)}
    | {"label": pa.array(range(-20, 20), pa.int64())}
)
"""Enough rows for TFRecord's scan, and for Parquet's bit-packed runs."""
LISTS = pa.table({"ids": [[j % 7 for j in range(i % 5 + 1)] for i in range(60)]})
"""None of them null or empty."""
NULLS = pa.table(
    {
        "feature": pa.array([None if i % 7 < 3 else i / 7 for i in range(90)], pa.float32()),
        "label": pa.array([None if 20 < i < 60 else i % 5 for i in range(90)], pa.int64()),
        "word": [None if i % 4 == 1 else "word"[: i % 5] for i in range(90)],
        "none": pa.array([None] * 90, pa.int32()),
    }
)
"""One by one, in runs, and nothing else."""
NESTED = pa.table(
    {
        "id": range(30),
        "chat": [[{"role": "user", "text": "x" * i}] * (i % 3) for i in range(30)],
        "tags": [[f"tag {j}" for j in range(i % 3)] if i % 5 else None for i in range(30)],
        "sizes": pa.array([[("a", i)] for i in range(30)], pa.map_(pa.string(), pa.int64())),
        "matrix": [[[1, 2], [i]] for i in range(30)],
    }
)
"""Columns without a tensor form."""
_TABLES = (SMALL, INFERRED, EVERY_TYPE, SCALARS)


def csv(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("csv")), rng, seeds("csv"))


def csv_gzip(rng: Random) -> bytes:
    return _packed(csv(rng), rng, "gzip")


def parquet(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("parquet")), rng, seeds("parquet"))


def parquet_footer(rng: Random) -> bytes:
    """Only the footer is damaged, and its length told rightly."""
    data = rng.choice(seeds("parquet"))
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = mutated(data[start:-8], rng, [data[start:-8]])
    return b"".join((data[:start], footer, len(footer).to_bytes(4, "little"), b"PAR1"))


def tfrecord(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("tfrecord")), rng, seeds("tfrecord"))


def tfrecord_packed(rng: Random) -> bytes:
    return _packed(tfrecord(rng), rng, rng.choice(("gzip", "zlib")))


def example(rng: Random) -> bytes:
    """Only the messages are damaged: their lengths and CRCs are right."""
    records = list(rng.choice(_payloads()))
    for index in rng.choices(range(len(records)), k=rng.choice((1, 1, 2, 5))):
        records[index] = mutated(records[index], rng, records)
    return b"".join(map(frame, records))


def framing(rng: Random) -> bytes:
    return mutated(frame(b"") + frame(b"x" * 40) + frame(bytes(300)), rng, seeds("tfrecord"))


def json(rng: Random) -> bytes:
    return mutated(rng.choice(_documents()), rng, _documents())


def arrow(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("arrow")), rng, seeds("arrow"))


def jsonl(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("jsonl")), rng, seeds("jsonl"))


def webdataset(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("webdataset")), rng, seeds("webdataset"))


def webdataset_index(rng: Random) -> bytes:
    files = [b"v1.2 2\njpg 1536 4096 17.jpg cls 6144 2 17.cls\njpg 7168 512 18.jpg\n",
             b"v1.1 1\njpg 512 9 cls 1536 1\n"]  # fmt: skip
    return mutated(rng.choice(files), rng, files)


def mds(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("mds")), rng, seeds("mds"))


def lance(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("lance")), rng, seeds("lance"))


def lance_table(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("lance-table")), rng, seeds("lance-table"))


def npy(rng: Random) -> bytes:
    return mutated(rng.choice(seeds("npy")), rng, seeds("npy"))


def jsonl_gzip(rng: Random) -> bytes:
    return _packed(jsonl(rng), rng, "gzip")


def _packed(data: bytes, rng: Random, codec: str) -> bytes:
    """Compressed; now and then the stream itself is damaged too."""
    packed = gzip.compress(data, 1) if codec == "gzip" else zlib.compress(data, 1)
    return mutated(packed, rng, [packed]) if rng.random() < 0.2 else packed


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    """Valid objects of a format: of our own writer, and the small ones of the corpus."""
    own = [] if name == "lance" else _written(name)
    files = sorted(CORPUS.glob(f"{name}/**/*.{name}"))
    others = (path.read_bytes() for path in files if path.stat().st_size <= _LARGEST_SEED)
    more = {"parquet": _plain_parquet, "arrow": _other_arrow, "jsonl": _nested_json, "npy": _arrays,
            "lance": partial(_by_lance, "files"), "lance-table": partial(_by_lance, "tables"),
    }  # fmt: skip
    more_of_it = more.get(name, tuple)()
    return (*own, *more_of_it, *others)


def _written(name: str) -> list[bytes]:
    return [encode(get(name), table) for table in _TABLES if name in WRITTEN]


def _by_lance(kind: str) -> list[bytes]:
    """Files or manifests of Lance, which a process of its own writes: inputs are tried in forks of
    this one, which the library's threads would not survive."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(_manifests if kind == "tables" else _written, "lance").result()


def _manifests(_: str) -> list[bytes]:
    import lance

    found = []
    for table in (SMALL, LISTS):
        with TemporaryDirectory() as url:
            written = lance.write_dataset(table, url, max_rows_per_file=4)
            written.delete("true = false")
            found += [path.read_bytes() for path in Path(url).glob("_versions/*.manifest")]
    return found


def _plain_parquet() -> Iterator[bytes]:
    """Pages without checksums: a flipped bit gets through to the decoders."""
    for table in (*_TABLES, LISTS, NULLS, NESTED):
        for compression, version in (("none", "1.0"), ("snappy", "2.0"), ("snappy", "1.0")):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression=compression, data_page_version=version)
            yield sink.getvalue().to_pybytes()


def _other_arrow() -> Iterator[bytes]:
    """Streams, compressed batches and dictionaries."""
    words = SMALL.set_column(1, "word", SMALL["word"].dictionary_encode())
    for table in (*_TABLES, NULLS, NESTED, words):
        for make, compression in product((pa.ipc.new_file, pa.ipc.new_stream), (None, "lz4")):
            sink = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression=compression)
            with make(sink, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=5)
            yield sink.getvalue().to_pybytes()


def _nested_json() -> Iterator[bytes]:
    yield encode(get("jsonl"), NESTED.drop_columns(["sizes"]))


@cache
def _payloads() -> tuple[tuple[bytes, ...], ...]:
    """The records of each seed."""
    return tuple(tuple(Deframer().feed(data)) for data in seeds("tfrecord"))


def _arrays() -> Iterator[bytes]:
    """Of NumPy's own writer."""
    rows = np.array([(1, [0.5, 1], b"a")], [("id", "i4"), ("box", "f8", 2), ("word", "S3")])
    arrays = np.arange(6), np.eye(3, dtype=np.float32), np.array(["a", "häß"]), rows
    files = [io.BytesIO() for _ in range(len(arrays) + 2)]
    for file, array in zip(files, arrays, strict=False):
        np.save(file, array)
    np.savez(files[-2], x=arrays[0], y=arrays[1])
    np.savez_compressed(files[-1], x=arrays[1], y=arrays[1])
    yield from (file.getvalue() for file in files)


@cache
def _documents() -> tuple[bytes, ...]:
    files = (ManifestFile("a.csv", 100, 10), ManifestFile("b.csv", 90, 9))
    columns = {"id": "int64", "ids": "list<int64>"}
    small = Manifest("mixed", "csv", "none", 0, 1, 200, 19, 2, columns, files)
    return manifest.dumps(small), store.dumps(sample_profile()), store.dumps(sample_sweep())
