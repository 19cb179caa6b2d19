"""`to_device` moves what ``.to`` would move, and tells what that cost. The device is torch's
"meta" where no other is needed: it takes tensors on any machine."""

from __future__ import annotations

import threading
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from time import perf_counter
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pipeprof.errors import UsageError
from pipeprof.loaders.tensors import Batch, Ragged
from pipeprof.measure.copies import this_thread
from pipeprof.measure.h2d import to_device
from pipeprof.measure.nested import tensors_in
from tests.measure.leaves import Graph, tensor


@pytest.fixture(autouse=True)
def nothing_noted():
    """Notes of other tests in this thread."""
    this_thread.copies.take()


Pair = namedtuple("Pair", "image label")


@dataclass(frozen=True)
class Sample:
    image: torch.Tensor
    name: str
    never_set: int = field(init=False)


class Named(dict):
    """A subclass with something besides its items."""

    owner = "nobody"


def structures() -> dict[str, Any]:
    named = Named(x=tensor(2))
    named.owner = "me"
    return {
        "tensor": tensor(2),
        "dict": {"x": tensor(2), "name": "a", 3: None},
        "subclass": named,
        "ordered": OrderedDict(b=tensor(1), a=tensor(2)),
        "default": defaultdict(list, x=tensor(2)),
        "user": UserDict(x=tensor(2)),
        "proxy": MappingProxyType({"x": tensor(2)}),
        "batch": Batch(x=tensor(2), words=Ragged(tensor(5), torch.tensor([0, 5]))),
        "list": [tensor(2), "text", 1.5, b"bytes"],
        "deque": deque([tensor(2), 1], maxlen=2),
        "tuple": (tensor(2), None, (tensor(1), [tensor(3)])),
        "namedtuple": Pair(tensor(2), 7),
        "dataclass": Sample(tensor(2), "a"),
        "packed": torch.nn.utils.rnn.pack_sequence([tensor(3), tensor(2)]),
    }


def described(item: Any) -> Any:
    """Everything about ``item`` but where its tensors are."""
    if isinstance(item, torch.Tensor):
        return (type(item), item.dtype, item.shape)
    if isinstance(item, (dict, UserDict, MappingProxyType)):
        return (type(item), [(key, described(value)) for key, value in item.items()])
    if isinstance(item, (list, tuple, deque)):
        return (type(item), [described(value) for value in item])
    if isinstance(item, (Sample, Ragged)):
        return (type(item), {name: described(value) for name, value in vars(item).items()})
    return item


@pytest.mark.parametrize("kind", structures())
def test_the_structure_stays_and_the_tensors_move(kind):
    batch = structures()[kind]
    before = described(batch)
    moved = to_device(batch, "meta")
    assert described(moved) == before
    assert described(batch) == before
    assert moved is not batch
    tensors = tensors_in(moved)
    assert tensors
    # lengths of a packed sequence stay with the host, as its own method has it
    on_host = [found for found in tensors if found.device.type == "cpu"]
    assert len(on_host) == (kind == "packed")
    assert all(found.device.type == "cpu" for found in tensors_in(batch) or [])


def test_a_subclass_keeps_what_it_has_besides_its_items():
    moved = to_device(structures()["subclass"], "meta")
    assert moved.owner == "me"
    assert to_device(structures()["default"], "meta")["new"] == []
    assert to_device(structures()["deque"], "meta").maxlen == 2


@pytest.mark.parametrize(
    "batch", ["text", None, 3, [1, "a"], {"x": np.ones(3)}, (), range(3), torch.Size([1]), object()]
)
def test_what_has_no_tensor_is_passed_on(batch):
    assert to_device(batch, "meta") is batch
    assert this_thread.copies.take() == []


def test_values_are_those_of_the_source():
    batch = {"x": torch.arange(5), "y": [torch.rand(3)]}
    moved = to_device(batch, "cpu")
    assert moved is batch, "it is there already: nothing is copied"
    assert this_thread.copies.take() == []


def test_bytes_and_copies_are_counted():
    start = perf_counter()
    to_device({"x": tensor(10, 10), "y": (tensor(3), torch.zeros(5, dtype=torch.int64))}, "meta")
    took = perf_counter() - start
    (copy,) = this_thread.copies.take()
    assert (copy.bytes, copy.copies) == (400 + 12 + 40, 3)
    assert copy.pageable_copies == 3
    assert not copy.blocking
    assert 0 < copy.seconds <= took
    assert this_thread.copies.take() == []


def test_our_own_batches_are_counted_whole():
    to_device(structures()["batch"], "meta", non_blocking=False)
    (copy,) = this_thread.copies.take()
    assert (copy.bytes, copy.copies, copy.blocking) == (8 + 20 + 16, 3, True)


def test_an_object_moves_itself_and_its_bytes_are_unknown():
    moved = to_device({"graph": Graph(), "x": tensor(2)}, "meta")
    assert moved["graph"].device == "meta"
    (copy,) = this_thread.copies.take()
    assert (copy.bytes, copy.copies) == (None, 1)


def test_the_bytes_of_a_sparse_tensor_are_unknown():
    moved = to_device(torch.eye(3).to_sparse(), "meta")
    assert moved.layout is torch.sparse_coo
    (copy,) = this_thread.copies.take()
    assert (copy.bytes, copy.copies) == (None, 1)


class Attributes(dict):
    """Items as attributes, as many a configuration has them."""

    __getattr__ = dict.__getitem__


def test_an_item_named_to_is_an_item():
    moved = to_device(Attributes(to=tensor(2)), "meta")
    assert moved["to"].device.type == "meta"


class Broken:
    def to(self, device: torch.device, non_blocking: bool) -> None:
        raise ValueError("I stay")


def test_errors_are_those_of_to():
    with pytest.raises(ValueError, match="I stay"):
        to_device([tensor(2), Broken()], "meta")
    for device in ("nowhere", "cuda" if not torch.cuda.is_available() else "cuda:99"):
        with pytest.raises((RuntimeError, AssertionError)) as expected:
            tensor(1).to(device)
        with pytest.raises(expected.type) as raised:
            to_device(tensor(1), device)
        assert str(raised.value) == str(expected.value)
    assert this_thread.copies.take() == []


def test_a_stream_of_another_device_is_refused():
    stream: Any = SimpleNamespace(device=torch.device("cuda:1"))
    for device in ("cpu", "cuda:0"):
        with pytest.raises(UsageError, match=f"a stream of cuda:1 cannot copy to {device}"):
            to_device(tensor(1), device, stream=stream)


def test_threads_do_not_mix():
    elsewhere = []

    def other():
        to_device(tensor(7), "meta")
        elsewhere.extend(this_thread.copies.take())

    to_device(tensor(2), "meta")
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert [copy.bytes for copy in elsewhere] == [28]
    assert [copy.bytes for copy in this_thread.copies.take()] == [8]
