"""A plain loop over the loaders of other libraries, with their released packages: losses are the
same, and what can be observed is measured."""

from __future__ import annotations

import subprocess

import pytest

from tests.integrations.environments import folder_of, plain, train, train_under_run
from tests.integrations.test_frameworks import WHOLE, check

pytestmark = pytest.mark.integrations

HOST = {"wait", "step"}
KINDS = {
    "stateful": ("main", WHOLE),
    "webdataset": ("main", WHOLE),
    "datasets": ("main", WHOLE),
    "streaming": ("streaming", WHOLE),
    "litdata": ("streaming", WHOLE),
    "nodes": ("main", HOST),
    "grain": ("main", HOST),
    "spdl": ("main", HOST),
    "geometric": ("main", WHOLE),
    "fastai": ("main", WHOLE),
}
"""Loaders of other libraries: their environment, and the stages that are observed of them."""


@pytest.mark.parametrize("kind", KINDS)
def test_loaders_of_other_libraries(kind: str) -> None:
    environment, stages = KINDS[kind]
    answer = train(environment, "other_loaders.py", "wrap", kind)
    check(answer, plain(environment, "other_loaders.py", kind), stages)


@pytest.mark.parametrize(
    ("kind", "stage"), [("nodes", "slow"), ("grain", "<lambda>"), ("spdl", "slow")]
)
def test_the_slow_stage_of_a_loader_that_works_in_threads_is_named(kind: str, stage: str) -> None:
    profile = train("main", "other_loaders.py", "wrap", kind).profiles["train"]
    assert profile["diagnosis"]["bottleneck"] == "pipeline"
    assert f"its stage {stage} is busy" in profile["diagnosis"]["headline"]
    (found,) = [each for each in profile["pipeline"] if each["name"] == stage]
    assert found["items"] == 320
    assert found["concurrency"] == 2


@pytest.mark.parametrize("kind", ["stateful", "webdataset", "datasets", "geometric", "fastai"])
def test_loaders_of_other_libraries_in_a_script_that_is_not_edited(kind: str, tmp_path) -> None:
    answer = train_under_run("main", "other_loaders.py", tmp_path, kind)
    (name,) = answer.profiles
    check(answer, plain("main", "other_loaders.py", kind), WHOLE, name)


@pytest.mark.parametrize("how", ["wrap", "run"])
def test_workers_that_are_threads_train_as_without_us(how: str, tmp_path) -> None:
    bare = plain("main", "other_loaders.py", "monai")
    if how == "wrap":
        answer = train("main", "other_loaders.py", "wrap", "monai")
    else:
        answer = train_under_run("main", "other_loaders.py", tmp_path, "monai")
    (profile,) = answer.profiles.values()
    assert answer.losses == bare.losses
    assert profile["missing"]["fetch"] == "its workers are threads of the training process"


SHARDS = """
import pipeprof
from datasets import Dataset
from datasets.distributed import split_dataset_by_node
from torch.utils.data import DataLoader

for shards, ranks in [(1, 1), (3, 2), (2, 1)]:
    rows = Dataset.from_dict({"row": list(range(400))}).to_iterable_dataset(num_shards=shards)
    if ranks > 1:
        rows = split_dataset_by_node(rows, rank=0, world_size=ranks)
    loader = pipeprof.wrap(DataLoader(rows, batch_size=4, num_workers=2), whole=True)
    list(loader)
    print(shards, ranks, *(each.code for each in loader.profile().findings))
"""


def test_shards_of_hugging_face_that_cannot_be_divided() -> None:
    """One process tries them all, since importing the libraries takes longest."""
    command = [str(folder_of("main") / "python"), "-W", "ignore", "-c", SHARDS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    wanted = {"workers-without-data", "every-rank-reads-all"}
    found = {
        (int(shards), int(ranks)): wanted & set(codes)
        for shards, ranks, *codes in map(str.split, done.stdout.splitlines())
    }
    assert found == {
        (1, 1): {"workers-without-data"},
        (3, 2): {"every-rank-reads-all"},
        (2, 1): set(),
    }


ONE_BATCH = """
import pipeprof
import torch
from fastai.data.load import DataLoader

loader = pipeprof.wrap(DataLoader(torch.arange(80), bs=4, num_workers=2))
for _ in range(2):
    list(loader)
    loader.one_batch()
profile = loader.profile()
print(profile.config.num_workers, *(epoch.batches for epoch in profile.epochs))
"""


def test_a_batch_that_fastai_only_shows_is_no_epoch() -> None:
    command = [str(folder_of("main") / "python"), "-W", "ignore", "-c", ONE_BATCH]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "20", "20"]
