"""The environment without coverage, which follows into the processes that a test starts: it takes
time there, and has threads and endings of its own."""

from __future__ import annotations

import os

UNWATCHED = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
