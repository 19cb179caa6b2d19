"""A process bound to cores that are far from its device."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.analyze.assemble import assemble
from pipeprof.model import Placement
from tests.findings.known import Samples, codes, nap, text_of


@pytest.mark.parametrize(
    ("device_node", "far"), [(1, True), (0, False), (None, False)], ids=["far", "near", "no device"]
)
def test_cores_and_device_on_nodes_of_their_own(device_node, far):
    loader = pipeprof.wrap(DataLoader(Samples(40, partial(nap, 0.002)), num_workers=1))
    list(loader)
    recording = loader.recording()
    place = Placement((0, 1), (0,), (0, 1), "default", device_node, {})
    environment = replace(recording.environment, placement=place)
    profile = assemble(replace(recording, environment=environment))
    assert ("far-from-device" in codes(profile)) is far
    if far:
        assert "device is on NUMA node 1" in text_of(profile, "far-from-device")
