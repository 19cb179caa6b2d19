"""Statistics of storage requests with realistic figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeprof.model import Percentiles, RequestFit, RequestStats


def sample_requests(**changes: Any) -> RequestStats:
    """Return statistics; ``changes`` replace fields."""
    stats = RequestStats(
        count=84,
        bytes=343_900_000,
        requests_per_s=2.75,
        in_flight=0.1,
        at_once=1.9,
        size=Percentiles(4_094_000.0, 4_194_000.0, 4_194_000.0, 4_194_000.0),
        latency_s=Percentiles(0.0371, 0.0362, 0.0514, 0.0623),
        first_byte_s=Percentiles(0.0121, 0.0117, 0.0204, 0.0310),
        retries=3,
        throttled=2,
        errors=0,
        lost=0,
        client_cpu_s=0.0031,
        client_share=0.16,
        core_wait_share=0.02,
        fit=RequestFit(0.0118, 163_000_000.0, 0.87, 0.32, (0.27, 0.38)),
        fit_missing="",
    )
    return replace(stats, **changes)
