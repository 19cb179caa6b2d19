"""Fixtures of several test files in this folder."""

import io

import pytest

from pipeprof.measure.patches.file_reads import holders_of_open, patch_open


@pytest.fixture
def patched_open(monkeypatch):
    """Patch `open` for one test, as in a worker."""
    for owner, name in holders_of_open():
        monkeypatch.setattr(owner, name, io.open)
    patch_open(holders_of_open())
