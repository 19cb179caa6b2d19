"""A data set of the user's own, which asks S3 through s3fs: each request is seen once."""

import s3fs
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof

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


def test_requests_of_s3fs_are_counted_one_by_one(server):
    bucket = server.root / "own"
    bucket.mkdir()
    for number, size in enumerate(SIZES):
        (bucket / str(number)).write_bytes(bytes(size))
    loader = pipeprof.wrap(DataLoader(Objects(), num_workers=1))
    assert sum(int(batch) for batch in loader) == sum(SIZES) + 350 * len(SIZES)
    requests = loader.profile().requests
    assert requests.count == len(SIZES) * 5
    assert requests.bytes == sum(SIZES) + 350 * len(SIZES)
    assert (requests.errors, requests.lost) == (0, 0)
    assert requests.client_cpu_s > 0
    assert requests.latency_s.p50 > 0
