"""What tests of findings share."""

import pytest

from pipeprof.measure import resource_sampler


@pytest.fixture
def watched_often(monkeypatch):
    """Looked at often, so that a test need not last: what a fork inherits."""
    monkeypatch.setattr(resource_sampler, "_GAUGE_SHARE", 1.0)
