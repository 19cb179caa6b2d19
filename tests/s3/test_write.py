"""Objects written to a real S3 server: whole or not at all, in one request or in parts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeprof.storage.write import object_sizes, open_object, read_object, remove_object

PARTS = {"default_block_size": 5 * 2**20}
"""s3fs then uploads what is larger in parts; by itself it does so from 50 MiB on."""


def files_in(bucket: Path) -> list[str]:
    """Also what the server keeps of uploads that are not finished."""
    return [name for _, _, names in os.walk(bucket) for name in names]


@pytest.mark.parametrize("size", [0, 1_000, 6 * 2**20])
def test_an_object_appears_when_it_is_whole(size: int, bucket: Path) -> None:
    url, data = f"s3://{bucket.name}/deep/x.bin", os.urandom(size)
    with open_object(url, PARTS) as sink:
        for start in range(0, size, 2**20):
            sink.write(data[start : start + 2**20])
        assert not (bucket / "deep" / "x.bin").exists()
    assert (bucket / "deep" / "x.bin").read_bytes() == data
    assert object_sizes(f"s3://{bucket.name}/deep") == {"x.bin": size}
    assert read_object(url) == data
    remove_object(url)
    remove_object(url)
    assert files_in(bucket) == []


@pytest.mark.parametrize("size", [1_000, 6 * 2**20])
def test_nothing_is_left_of_an_abandoned_object(size: int, bucket: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        give_up(f"s3://{bucket.name}/x.bin", size)
    assert files_in(bucket) == []


def give_up(url: str, size: int) -> None:
    with open_object(url, PARTS) as sink:
        for _ in range(0, size, 2**20):
            sink.write(bytes(min(size, 2**20)))
        raise KeyboardInterrupt
