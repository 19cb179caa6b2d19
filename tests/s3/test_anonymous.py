"""Public data is read without credentials."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipeprof
from tests.s3.conftest import TRIED
from tests.s3.relay import Relay, relaying
from tests.s3.server import serving

BUCKET = "public-data"


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """A server that serves anyone, with a table in its bucket."""
    folder = tmp_path_factory.mktemp("public")
    (folder / "root" / BUCKET).mkdir(parents=True)
    pq.write_table(pa.table({"x": range(1000)}), folder / "root" / BUCKET / "x.parquet")
    with (
        serving(folder / "root", folder / "log", public=True) as server,
        relaying(server.endpoint) as relay,
    ):
        relay.bucket = BUCKET
        yield relay


@pytest.mark.usefixtures("new_clients")
@pytest.mark.parametrize("client", TRIED)
def test_it_is_read_when_no_credentials_are_asked_for(
    client: str, public: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", public.endpoint)
    options = {"s3_client": client, "anon": True}
    dataset = pipeprof.open_dataset(f"s3://{BUCKET}/", batch_size=300, storage_options=options)
    assert sum(int(batch["x"].sum()) for batch in dataset) == sum(range(1000))
    assert public.headers
    assert not any("authorization" in headers for headers in public.headers)
