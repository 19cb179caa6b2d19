"""`--set`: which arguments of a DataLoader are replaced, and the notes on the others."""

import inspect

import pytest
import torch
from torch.utils.data import DataLoader

from pipeprof.errors import UsageError
from pipeprof.loaders.autopatch.overrides import (
    Override,
    merge_overrides,
    override_arguments,
    parse_override,
)

DATA = torch.arange(40)


@pytest.mark.parametrize(
    ("text", "place", "arguments"),
    [
        ("num_workers=8", None, {"num_workers": 8}),
        (" num_workers = 0 , timeout=1.5", None, {"num_workers": 0, "timeout": 1.5}),
        ("train.py:42:batch_size=64", "train.py:42", {"batch_size": 64}),
        ("train.py:42 #2:in_order=no", "train.py:42 #2", {"in_order": False}),
        ("a b/data.py:pin_memory=True", "a b/data.py", {"pin_memory": True}),
        ("multiprocessing_context=spawn", None, {"multiprocessing_context": "spawn"}),
        ("persistent_workers=1,prefetch_factor=4", None,
         {"persistent_workers": True, "prefetch_factor": 4}),
    ],
)  # fmt: skip
def test_what_may_be_set(text, place, arguments):
    assert parse_override(text) == Override(text, place, arguments)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' sets nothing"),
        ("num_workers", "sets nothing; write it like num_workers=8,prefetch_factor=4"),
        ("num_workers=8,", "sets nothing"),
        ("train.py:42", "sets nothing"),
        ("shuffle=true", "'shuffle' cannot be set; what can: num_workers"),
        ("num_workers=-1", "num_workers=-1 is not a whole number of 0 or more"),
        ("num_workers=2.5", "is not a whole number"),
        ("prefetch_factor=0", "prefetch_factor=0 is not a whole number of 1 or more"),
        ("batch_size=", "batch_size= is not a whole number"),
        ("pin_memory=maybe", "pin_memory=maybe is neither true nor false"),
        ("timeout=inf", "timeout=inf is not a number of seconds"),
        ("multiprocessing_context=thread", "is none of fork, forkserver, spawn"),
        ("num_workers=1,num_workers=2", "sets num_workers twice"),
    ],
)
def test_what_may_not_be_set(text, says):
    with pytest.raises(UsageError) as raised:
        parse_override(text)
    assert says in str(raised.value)


def test_what_is_for_one_loader_counts_before_what_is_for_a_file_or_for_all():
    each = [
        parse_override("train.py:42:num_workers=3"),
        parse_override("train.py:num_workers=2,timeout=2"),
        parse_override("num_workers=1,pin_memory=true"),
    ]
    assert merge_overrides(each, "train.py:42") == {
        "num_workers": 3,
        "timeout": 2,
        "pin_memory": True,
    }
    assert merge_overrides(each, "train.py:42 #2") == {
        "num_workers": 2,
        "timeout": 2,
        "pin_memory": True,
    }
    assert merge_overrides(each, "data.py:42") == {"num_workers": 1, "pin_memory": True}


PLAIN = {
    name: parameter.default
    for name, parameter in inspect.signature(DataLoader).parameters.items()
    if name != "dataset"
}


@pytest.mark.parametrize(
    ("given", "wanted", "changes", "notes"),
    [
        ({}, {"num_workers": 2}, {"num_workers": 2}, ["--set replaced num_workers 0 → 2"]),
        ({"num_workers": 2}, {"num_workers": 2}, {}, []),
        ({}, {"num_workers": 2, "prefetch_factor": 4}, {"num_workers": 2, "prefetch_factor": 4},
         ["--set replaced num_workers 0 → 2, prefetch_factor None → 4"]),
        ({}, {"prefetch_factor": 4}, {}, ["--set prefetch_factor was left out: it needs workers"]),
        ({"num_workers": 2, "timeout": 5}, {"num_workers": 0, "persistent_workers": True},
         {"num_workers": 0, "timeout": 0},
         ["--set replaced num_workers 2 → 0, timeout 5 → 0",
          "--set persistent_workers was left out: it needs workers"]),
        ({"batch_sampler": [[1]]}, {"batch_size": 4}, {},
         ["--set batch_size=4 was left out: the script's batch_sampler makes the batches"]),
        ({"batch_size": None}, {"batch_size": 4}, {},
         ["--set batch_size=4 was left out: the script's data set makes the batches"]),
        ({"num_workers": 1, "multiprocessing_context": torch.multiprocessing.get_context("spawn")},
         {"multiprocessing_context": "fork"}, {"multiprocessing_context": "fork"},
         ["--set replaced multiprocessing_context spawn → fork"]),
        ({"num_workers": 1, "multiprocessing_context": torch.multiprocessing.get_context("spawn")},
         {"multiprocessing_context": "spawn"}, {}, []),
    ],
)  # fmt: skip
def test_as_much_is_replaced_as_torch_allows(given, wanted, changes, notes):
    found, found_notes = override_arguments({**PLAIN, **given}, wanted)
    assert found == changes
    assert list(found_notes) == notes
    DataLoader(DATA, **{**PLAIN, **given, **changes})


def test_an_argument_that_this_torch_does_not_know_is_left_out():
    changes, notes = override_arguments({"num_workers": 1}, {"in_order": False})
    assert changes == {}
    assert notes == ("--set in_order=False was left out: this DataLoader takes no such argument",)
