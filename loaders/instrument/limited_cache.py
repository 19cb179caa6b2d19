"""Read how large a cache of downloaded data may become, what it holds, and what it would need.

Known are the data sets of MosaicML Streaming (``cache_limit``) and LitData (``max_cache_size``).
Both keep downloaded shards in a folder of the node, and delete some when that is full.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.log import suppress_and_log
from pipeprof.model import LimitedCache

_log = logging.getLogger(__name__)

_LITDATA_ROOM = 1.5
"""Each worker of LitData estimates what the folder holds, and evicts before it is full. Tried with
1.25 times the size of the data it still did; with 1.5 times it did not."""


def limited_cache_of(dataset: Any) -> LimitedCache | None:
    """Return the cache of ``dataset`` as a pass begins; ``None`` where it has none or no limit."""
    with suppress_and_log(_log, "the cache of downloads is not known"):
        if safe_getattr(dataset, "cache_limit"):
            return _of_streaming(dataset)
        if safe_getattr(dataset, "max_cache_size"):
            return _of_litdata(dataset)
    return None


def _of_streaming(dataset: Any) -> LimitedCache | None:
    if all(stream.remote is None for stream in dataset.streams):
        return None
    nodes = dataset._unique_rank_world.num_nodes
    data = sum(shard.get_raw_size() for shard in dataset.shards) // nodes
    index = sum(stream.get_index_size() for stream in dataset.streams)
    needed = data + index + max(shard.get_max_size() for shard in dataset.shards)
    present = max(0, int(dataset.cache_usage) - index)
    return LimitedCache("cache_limit", int(dataset.cache_limit), data, needed, present)


def _of_litdata(dataset: Any) -> LimitedCache | None:
    """Only workers open the cache. This process has the folder, with the index of the data."""
    folder = dataset.input_dir.path
    if not dataset.input_dir.url or not folder:
        return None
    limit = sys.modules["litdata.utilities.format"]._parse_max_cache_size(dataset.max_cache_size)
    with open(os.path.join(folder, "index.json"), "rb") as file:
        chunks = json.load(file)["chunks"]
    used = set(dataset.subsampled_files)
    data = sum(each["chunk_bytes"] for each in chunks if each["filename"] in used)
    data //= dataset.distributed_env.num_nodes
    with os.scandir(folder) as entries:
        present = sum(entry.stat().st_size for entry in entries if entry.name in used)
    return LimitedCache("max_cache_size", limit, data, int(_LITDATA_ROOM * data), present)
