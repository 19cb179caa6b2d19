"""Fixtures of several test files in this folder."""

import io

import pytest

from pipeprof.measure.patches.file_reads import _holders, patch_open


@pytest.fixture
def patched_open(monkeypatch):
    """Patch `open` for one test, as in a worker."""
    for owner, name in _holders():
        monkeypatch.setattr(owner, name, io.open)
    patch_open()
