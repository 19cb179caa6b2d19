"""Profiles go through the store by which torchrun's launchers found each other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import torch.distributed as dist

from pipeprof.integrations import rank_store
from pipeprof.integrations.rank_store import RankStore
from pipeprof.model import JobPlace

FILES = {"train.json": b"{}" * 1000, "folder": b"host/rank1"}


def place(rank: int, attempt: int = 0) -> JobPlace:
    return JobPlace("torchrun", rank, world_size=2, job_id="job", attempt=attempt)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A store as the launcher of node 0 has."""
    store = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=5), wait_for_workers=False)
    yield store.port  # noqa: PT022  (the store lives as long as this function)


def of(rank: int, port: int, attempt: int = 0) -> RankStore:
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                 "TORCHELASTIC_USE_AGENT_STORE": "True"}  # fmt: skip
    found = RankStore.of_launcher(place(rank, attempt), variables)
    assert found is not None
    return found


def test_rank_0_receives_what_another_sent(port: int) -> None:
    assert of(0, port).receive(1) is None
    assert of(1, port).send(FILES)
    assert of(0, port).receive(1) == FILES
    assert of(0, port, attempt=1).receive(1) is None, "it was sent before a restart"


def test_a_job_does_not_fill_the_memory_of_the_launcher(port: int, monkeypatch) -> None:
    monkeypatch.setattr(rank_store, "_MOST_BYTES", 64)
    assert not of(1, port, attempt=2).send(FILES)
    assert of(0, port, attempt=2).receive(1) is None


def test_without_a_launchers_store_there_is_none() -> None:
    assert RankStore.of_launcher(place(1), {}) is None
    assert RankStore.of_launcher(place(1), {"TORCHELASTIC_USE_AGENT_STORE": "True"}) is None


def test_a_store_that_has_gone_disturbs_nobody() -> None:
    store = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=5), wait_for_workers=False)
    first, second = of(0, store.port), of(1, store.port)
    del store
    second.send(FILES)  # which returns before an answer could come
    assert first.receive(1) is None
