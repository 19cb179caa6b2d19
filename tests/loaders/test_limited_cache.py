"""Data sets that limit their cache of downloads, as MosaicML Streaming and LitData keep them."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from pipeprof.loaders.instrument.limited_cache import limited_cache_of
from pipeprof.model import LimitedCache


def streaming(limit, remote="s3://bucket/data", nodes=1):
    shard = SimpleNamespace(get_raw_size=lambda: 100, get_max_size=lambda: 150)
    return SimpleNamespace(
        cache_limit=limit, shards=[shard] * 4, cache_usage=205,
        streams=[SimpleNamespace(remote=remote, get_index_size=lambda: 5)],
        _unique_rank_world=SimpleNamespace(num_nodes=nodes),
    )  # fmt: skip


@pytest.fixture
def litdata(monkeypatch, tmp_path):
    module = ModuleType("litdata.utilities.format")
    module._parse_max_cache_size = int
    monkeypatch.setitem(sys.modules, module.__name__, module)
    chunks = [{"filename": f"chunk-{nth}.bin", "chunk_bytes": 100} for nth in range(5)]
    (tmp_path / "index.json").write_text(json.dumps({"chunks": chunks}))
    for nth in (0, 4):
        (tmp_path / f"chunk-{nth}.bin").write_bytes(bytes(100))

    def dataset(limit, url="s3://bucket/data", nodes=1):
        return SimpleNamespace(
            max_cache_size=limit, input_dir=SimpleNamespace(path=str(tmp_path), url=url),
            subsampled_files=[each["filename"] for each in chunks[:4]],
            distributed_env=SimpleNamespace(num_nodes=nodes),
        )  # fmt: skip

    return dataset


def test_the_limit_the_data_and_what_is_held_are_read(litdata):
    assert limited_cache_of(streaming(300)) == LimitedCache("cache_limit", 300, 400, 555, 200)
    assert limited_cache_of(litdata("300")) == LimitedCache("max_cache_size", 300, 400, 600, 100)


def test_a_node_reads_its_part(litdata):
    assert limited_cache_of(streaming(300, nodes=2)).data_bytes == 200
    assert limited_cache_of(litdata(300, nodes=2)).data_bytes == 200


def test_data_that_is_not_downloaded_or_without_a_limit_has_no_such_cache(litdata):
    for dataset in (streaming(300, remote=None), litdata(300, url=None), streaming(None), object()):
        assert limited_cache_of(dataset) is None


def test_a_data_set_that_is_not_as_expected_is_left_alone(litdata):
    other = SimpleNamespace(cache_limit=5), SimpleNamespace(max_cache_size=5)
    for dataset in (litdata("0.9 of the disk"), *other):
        assert limited_cache_of(dataset) is None
