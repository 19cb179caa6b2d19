"""What a test needs of the machine."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """``what`` is not to be had: in continuous integration a failure, elsewhere a loud skip."""
    if "CI" in os.environ:
        pytest.fail(f"{what}, and continuous integration must test this")
    pytest.skip(f"NOT TESTED: {what}")
