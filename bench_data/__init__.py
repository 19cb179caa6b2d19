"""Generate seeded data sets of any size, in every format, on any storage."""

from __future__ import annotations

KINDS = ("tabular", "wide", "images", "tokens")
"""The kinds of data sets; each is the object ``kind`` in ``bench_data/NAME.py``."""
