"""Data sets of the user's own, which ask S3 through a library: each request is counted once."""

import os

import pytest
import s3fs
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from tests.s3.conftest import lead_to, needs_obstore

SIZES = [1000 * (number + 1) for number in range(6)]


class Objects(Dataset):
    """Sample i: object i as a whole, three ranges of it beside each other, and through a file."""

    def __len__(self):
        return len(SIZES)

    def __getitem__(self, index):
        store, path = s3fs.S3FileSystem(), f"own/{index}"
        whole = store.cat_file(path)
        parts = store.cat_ranges([path] * 3, [0, 10, 20], [100, 110, 120])
        with store.open(path, "rb", cache_type="none") as file:
            head = file.read(50)
        return torch.tensor(len(whole) + sum(map(len, parts)) + len(head))


@pytest.fixture(scope="module", autouse=True)
def objects(server):
    """The objects in a bucket."""
    bucket = server.root / "own"
    bucket.mkdir()
    for number, size in enumerate(SIZES):
        (bucket / str(number)).write_bytes(bytes(size))


def test_requests_of_s3fs_are_counted_one_by_one():
    loader = pipeprof.wrap(DataLoader(Objects(), num_workers=1))
    assert sum(int(batch) for batch in loader) == sum(SIZES) + 350 * len(SIZES)
    requests = loader.profile().requests
    assert requests.count == len(SIZES) * 5
    assert requests.bytes == sum(SIZES) + 350 * len(SIZES)
    assert (requests.errors, requests.lost) == (0, 0)
    assert requests.client_cpu_s > 0
    assert requests.latency_s.p50 > 0


class Botocores(Dataset):
    """Sample i: object i as a whole, and a range of it, by what boto3 is made of."""

    def __len__(self):
        return len(SIZES)

    def __getitem__(self, index):
        import botocore.config
        import botocore.session

        client = botocore.session.get_session().create_client(
            "s3", region_name="us-east-1", endpoint_url=os.environ["AWS_ENDPOINT_URL"],
            config=botocore.config.Config(s3={"addressing_style": "path"}),
        )  # fmt: skip
        client.head_object(Bucket="own", Key=str(index))
        body = client.get_object(Bucket="own", Key=str(index))["Body"].read()
        part = client.get_object(Bucket="own", Key=str(index), Range="bytes=10-109")["Body"]
        return torch.tensor(len(body) + sum(map(len, part.iter_chunks(30))))


@pytest.mark.parametrize("workers", [0, 1])
def test_objects_through_botocore_are_reads(workers, relay):
    loader = pipeprof.wrap(DataLoader(Botocores(), num_workers=workers))
    assert sum(int(batch) for batch in loader) == sum(SIZES) + 100 * len(SIZES)
    profile = loader.profile()
    assert profile.requests.count == 2 * len(SIZES)
    assert profile.requests.bytes == sum(SIZES) + 100 * len(SIZES)
    assert profile.requests.latency_s.p50 >= profile.requests.first_byte_s.p50 > 0
    assert profile.stages["read"].count > 0
    assert profile.diagnosis.bottleneck in ("read", "fetch")


class Ranges(Dataset):
    """Sample i: four ranges of object i through obstore, three of them beside each other."""

    def __len__(self):
        return len(SIZES)

    def __getitem__(self, index):
        import obstore

        store = obstore.store.S3Store(
            "own", endpoint=os.environ["AWS_ENDPOINT_URL"], client_options={"allow_http": True},
            virtual_hosted_style_request=False,
        )  # fmt: skip
        one = obstore.get_range(store, str(index), start=0, length=100)
        parts = store.get_ranges(str(index), starts=[0, 300, 600], lengths=[10, 20, 30])
        return torch.tensor(len(one) + sum(map(len, parts)))


@needs_obstore
@pytest.mark.parametrize("workers", [0, 1])
def test_ranges_through_obstore_are_reads(workers, one_relay, monkeypatch):
    lead_to(
        one_relay.endpoint, monkeypatch
    )  # the server says 200 to a range, which obstore refuses
    method = "spawn" if workers else None  # obstore hangs in a fork of a process that used it
    loader = pipeprof.wrap(
        DataLoader(Ranges(), num_workers=workers, multiprocessing_context=method)
    )
    assert sum(int(batch) for batch in loader) == 160 * len(SIZES)
    read = loader.profile().stages["read"]
    assert read.count > 0
    assert (read.bytes, read.requests) == (160 * read.count, 4 * read.count)
    assert read.p50_s > 0


def whole(reader):
    return torch.tensor(len(reader.read()))


def in_parts(reader):
    head = bytearray(100)
    return torch.tensor(reader.readinto(head) + len(reader.read(50)))


@pytest.mark.parametrize("workers", [0, 1])
def test_objects_through_the_connector_for_pytorch_are_reads(workers):
    connector = pytest.importorskip("s3torchconnector")
    path_style = connector.S3ClientConfig(force_path_style=True)
    endpoint = os.environ["AWS_ENDPOINT_URL"]

    def read_by(transform):
        data = connector.S3MapDataset.from_prefix(
            "s3://own/", region="us-east-1", endpoint=endpoint, transform=transform,
            s3client_config=path_style,
        )  # fmt: skip
        loader = pipeprof.wrap(DataLoader(data, batch_size=None, num_workers=workers))
        return sum(int(batch) for batch in loader), loader.profile()

    size, profile = read_by(whole)
    assert size == sum(SIZES)
    assert profile.requests.count == len(SIZES)
    assert profile.requests.bytes == sum(SIZES)
    size, profile = read_by(in_parts)
    assert size == 150 * len(SIZES)
    read = profile.stages["read"]
    assert read.bytes == 150 * read.count > 0
