"""What a trace of a GPU says of each batch, and the training that is compared with it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.gpu_model import RESNET_50, Training, residual_network
from benchmarks.gpu_trace import NEXT, truths


def event(kind: str, name: str, begin_us: float, end_us: float) -> dict[str, Any]:
    return {"cat": kind, "name": name, "ts": begin_us, "dur": end_us - begin_us}


def taken(begin_us: float, end_us: float) -> dict[str, Any]:
    return event("user_annotation", NEXT, begin_us, end_us)


TRACE = [
    taken(0, 100),
    event("kernel", "of the step before", -50, 40),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 110, 130),
    event("kernel", "forward", 130, 250),
    event("kernel", "on another stream", 200, 300),
    event("cpu_op", "aten::conv2d", 100, 400),
    taken(200, 260),
    event("kernel", "backward", 320, 400),
    taken(500, 510),
    {"ph": "M", "name": "process_name"},
]


def test_a_device_is_starved_where_it_has_no_work_while_the_host_waits() -> None:
    first, second = truths(TRACE)
    assert first.cycle_s == pytest.approx(200e-6)
    assert first.starved_s == pytest.approx(60e-6), "from 40 to 100 µs"
    assert first.idle_s == pytest.approx(70e-6), "and until the copy, which is the loop's"
    assert first.h2d_s == pytest.approx(20e-6)
    assert second.starved_s == 0.0
    assert second.idle_s == pytest.approx(120e-6), "from 300 to 320 and from 400 to 500 µs"


def test_the_order_of_events_does_not_matter() -> None:
    assert truths(TRACE[::-1]) == truths(TRACE)


def test_the_network_has_the_parameters_of_the_paper_s() -> None:
    network = residual_network(RESNET_50)
    assert sum(each.numel() for each in network.parameters()) == 25_557_032


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_step_trains(precision: Any) -> None:
    torch.manual_seed(0)
    training = Training((1, 1, 1, 1), precision, torch.device("cpu"))
    before = [each.clone() for each in training._model.parameters()]
    photos = torch.randint(0, 256, (2, 32, 32, 3), dtype=torch.uint8)
    for _ in range(12):  # with float16 the first steps only find a scale that fits
        training.step(photos, torch.tensor([1, 2]))
    assert not all(map(torch.equal, before, training._model.parameters()))
