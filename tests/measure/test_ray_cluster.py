"""What an error of a Ray cluster says."""

from __future__ import annotations

import pytest

from pipeprof.measure.ray_cluster import missing_module

TRACEBACK = """ray::Member.answer() (pid=1)
  File "/home/a/pipeprof/formats/decompress.py", line 14, in <module>
    from backports import zstd
ModuleNotFoundError: No module named '{}'"""


@pytest.mark.parametrize("module", ["backports.zstd", "pipeprof"])
def test_the_module_that_nodes_lack_is_named(module: str) -> None:
    assert missing_module(RuntimeError(TRACEBACK.format(module))) == module


def test_another_error_lacks_no_module() -> None:
    assert missing_module(RuntimeError("The actor died: pipeprof was killed")) is None
