"""What is fuzzed: everything that turns bytes from outside into something else.

A target makes damaged inputs, and checks one: it returns when the input was read, and raises a
`PipeprofError` when it was refused. Anything else is a fault of the reader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from pipeprof.formats.lance.table import parse_manifest
from tests.fuzz import inputs
from tests.fuzz.checks import (
    by_protobuf,
    check_framing,
    check_json,
    indexed,
    of_format,
    planned,
    replaced,
)


@dataclass(frozen=True)
class Target:
    name: str
    make: Callable[[Random], bytes]
    """A damaged object."""
    check: Callable[[bytes], object]

    def __str__(self) -> str:
        return self.name


TARGETS = {
    target.name: target
    for target in (
        Target("csv", inputs.csv, of_format("csv")),
        Target("csv-gzip", inputs.csv_gzip, of_format("csv")),
        Target("parquet", inputs.parquet, of_format("parquet")),
        Target("parquet-footer", inputs.parquet_footer, of_format("parquet")),
        Target("tfrecord", inputs.tfrecord, of_format("tfrecord")),
        Target("tfrecord-packed", inputs.tfrecord_packed, of_format("tfrecord")),
        Target("example", inputs.example, of_format("tfrecord")),
        Target("example-by-protobuf", inputs.example, by_protobuf),
        Target("arrow", inputs.arrow, of_format("arrow")),
        Target("jsonl", inputs.jsonl, of_format("jsonl")),
        Target("jsonl-gzip", inputs.jsonl_gzip, of_format("jsonl")),
        Target("webdataset", inputs.webdataset, of_format("webdataset")),
        Target("webdataset-index", inputs.webdataset_index, indexed),
        Target("mds", inputs.mds, of_format("mds")),
        # pylance ends the process when it decodes some damaged pages
        Target("lance", inputs.lance, planned("lance")),
        Target("lance-table", inputs.lance_table, parse_manifest),
        Target("npy", inputs.npy, of_format("npy")),
        Target("csv-replaced", inputs.csv, replaced("csv")),
        Target("parquet-replaced", inputs.parquet, replaced("parquet")),
        Target("tfrecord-replaced", inputs.tfrecord, replaced("tfrecord")),
        Target("arrow-replaced", inputs.arrow, replaced("arrow")),
        Target("jsonl-replaced", inputs.jsonl, replaced("jsonl")),
        Target("webdataset-replaced", inputs.webdataset, replaced("webdataset")),
        Target("mds-replaced", inputs.mds, replaced("mds")),
        Target("npy-replaced", inputs.npy, replaced("npy")),
        Target("framing", inputs.framing, check_framing),
        Target("json", inputs.json, check_json),
    )
}
