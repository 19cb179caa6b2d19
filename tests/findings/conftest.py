"""What tests of findings share."""

import pytest

from pipeprof.measure import meter


@pytest.fixture
def watched_often(monkeypatch):
    """Looked at often, so that a test need not last: what a fork inherits."""
    monkeypatch.setattr(meter, "_GAUGE_SHARE", 1.0)
